package observe

import "testing"

// Every code has a sentence of its own, and a sentence from an earlier state file stays readable.
func TestWaitEvidence_Text(t *testing.T) {
	seen := map[string]WaitEvidence{}
	for _, e := range []WaitEvidence{WaitAnnounced, WaitQEMUWaits, WaitQEMUStarts, WaitQEMUStopped, WaitQEMUSilent,
		WaitLibvirtStopped,
		WaitSentElsewhere} {
		t.Run(string(e), func(t *testing.T) {
			text := e.Text()
			if other, had := seen[text]; text == string(e) || had {
				t.Errorf("%q has the text %q, which is also that of %q", e, text, other)
			}
			seen[text] = e
		})
	}
	for _, text := range []string{"", "its QEMU has paused it"} {
		if got := WaitEvidence(text).Text(); got != text {
			t.Errorf("%q is shown as %q", text, got)
		}
	}
}
