package cli

import (
	"strings"
	"testing"
	"time"

	"heddle/internal/api"
)

// A change that a controller sent has nobody listed who is asked: the line says who is.
func TestS81_ProgressSaysThatControllersAreAsked(t *testing.T) {
	if got := trialText(&api.Trial{State: api.TrialAsking,
		Deadline: time.Now().Add(110 * time.Second)}); !strings.HasPrefix(got,
		"asking the controllers; back in 1m") {
		t.Errorf("%q", got)
	}
}
