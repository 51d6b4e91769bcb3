package adopt

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"heddle/internal/agent/state"
	"heddle/internal/host/reach"
	"heddle/internal/observe/undone"
)

func TestS81_WhenAChangeStaysAndWhenItIsTakenBack(t *testing.T) {
	const made, within = 100 * time.Second, 20 * time.Second
	silent := []reach.Ask{{Device: "vmk0", Kind: reach.Gateway, Address: netip.MustParseAddr("192.0.2.1")}}
	answered := []reach.Ask{{Device: "vmk0", Kind: reach.Gateway, Address: netip.MustParseAddr("192.0.2.1"),
		Answered: true}}
	for _, c := range []struct {
		what            string
		asks            []reach.Ask
		reached, agreed bool
		after           time.Duration
		want            Verdict
		why             string
	}{
		{"just made", silent, false, false, 0, Wait, ""},
		{"silent, not for long", silent, false, false, within - 1, Wait, ""},
		{"silent", silent, false, false, within, Revert, "gateway 192.0.2.1 by vmk0 answered before"},
		{"one answer alone", answered, false, false, within, Revert, "did not go on answering"},
		{"reached", answered, true, false, time.Second, Keep, ""},
		{"reached at the last moment", answered, true, false, within, Keep, ""},
		{"the operator's word is enough", silent, false, true, time.Second, Keep, ""},
		{"nobody to ask, not confirmed yet", nil, false, false, within - 1, Wait, ""},
		{"nobody to ask, not confirmed", nil, false, false, within, Revert, "not confirmed within 20s"},
		{"nobody to ask, confirmed", nil, false, true, time.Second, Keep, ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			r := &Change{Phase: Waiting, Asks: c.asks, Reached: c.reached, Agreed: c.agreed, MadeAt: made,
				Within: within}
			if got, why := r.Judge(made + c.after); got != c.want || !strings.Contains(why.Text(), c.why) ||
				why.None() != (c.why == "") {
				t.Errorf("%s: %v %+v", c.what, got, why)
			}
			r.Phase = Reverting
			if got, _ := r.Judge(made + time.Hour); got != Wait {
				t.Errorf("%s, on its way back: %v", c.what, got)
			}
		})
	}
}

func TestS81_AChangeOfAControllerStaysWhereOneAnswersAtTheEnd(t *testing.T) {
	const made = 100 * time.Second
	for _, c := range []struct {
		what            string
		answered, after time.Duration // since it was made; 0 for never
		agreed          bool
		want            Verdict
	}{
		{"just made", 0, 0, false, Wait},
		{"answered, and the time is not over", 29 * time.Second, 29 * time.Second, false, Wait},
		{"answered until the end", 28 * time.Second, 30 * time.Second, false, Keep},
		{"answered at first, and lost since", 5 * time.Second, 30 * time.Second, false, Revert},
		{"never answered", 0, 30 * time.Second, false, Revert},
		{"the operator's word is enough", 0, time.Second, true, Keep},
	} {
		t.Run(c.what, func(t *testing.T) {
			r := &Change{Phase: Waiting, Controllers: true, Agreed: c.agreed, MadeAt: made, Within: ControllersWithin}
			if c.answered > 0 {
				r.Answered = made + c.answered
			}
			got, why := r.Judge(made + c.after)
			if got != c.want || (why.Code == undone.ControllersSilent) != (c.want == Revert) {
				t.Errorf("%v %+v", got, why)
			}
		})
	}
}

func TestS81_AnAgentThatStartsAgainGivesTheControllersTime(t *testing.T) {
	const made = 100 * time.Second
	for _, c := range []struct {
		what, here string
		now, end   time.Duration
	}{
		{"soon", "boot 1", made + time.Second, made + ControllersWithin},
		{"when the time is over", "boot 1", made + time.Hour, made + time.Hour + controllersSilence},
		{"in another boot, whose clock begins anew", "boot 2", 5 * time.Second, 5*time.Second + ControllersWithin},
	} {
		t.Run(c.what, func(t *testing.T) {
			r := &Change{Phase: Waiting, Controllers: true, Place: "boot 1", MadeAt: made, Within: ControllersWithin,
				Answered: made + 1}
			if _, ok := r.Resume(c.now, c.here); !ok || r.Place != c.here {
				t.Fatalf("it is not taken up: %+v", r)
			}
			if got, _ := r.Judge(c.end - 1); got != Wait {
				t.Errorf("before the end: %v", got)
			}
			if got, _ := r.Judge(c.end); got != Revert {
				t.Errorf("at the end: %v", got)
			}
		})
	}
	r := &Change{Phase: Waiting, Controllers: true, Place: "boot 1", MadeAt: made, Within: ControllersWithin}
	for range mostResumed {
		if _, ok := r.Resume(made, "boot 1"); !ok {
			t.Fatal("it is not taken up")
		}
	}
	if why, ok := r.Resume(made, "boot 1"); ok || why.Code != undone.Interrupted {
		t.Errorf("an agent that starts over and over waits again: %+v", why)
	}
}

func TestS81_TheChangeThatIsTriedComesBackFromTheJournal(t *testing.T) {
	dir := t.TempDir()
	j, err := OpenJournal(dir)
	if err != nil {
		t.Fatal(err)
	}
	j.Change = &Change{Phase: Waiting, What: "apply x", File: &state.Source{File: "x", Content: "switches: []\n"},
		Ports: []PortBefore{{Name: "vmk0", Override: &state.Override{PortGroup: "g"}}},
		Asks: []reach.Ask{{Device: "vmk0", Kind: reach.Session, Local: netip.MustParseAddrPort("192.0.2.10:22"),
			Remote: netip.MustParseAddrPort("[2001:db8::1]:4711")}}, MadeAt: 7, Within: time.Minute}
	if err := j.Save(); err != nil {
		t.Fatal(err)
	}
	again, err := OpenJournal(dir)
	if err != nil || !reflect.DeepEqual(again.Change, j.Change) {
		t.Errorf("%v: %+v, want %+v", err, again.Change, j.Change)
	}
}
