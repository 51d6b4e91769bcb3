package bench

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func TestWhatIsLeftBehindIsSaidInsteadOfTheInterruption(t *testing.T) {
	left := errors.New("namespace hb1 is left")
	if err := orLeft(context.Canceled, left); errors.Is(err, context.Canceled) || !errors.Is(err, left) ||
		!strings.Contains(err.Error(), "canceled") {
		t.Errorf("got %v", err)
	}
	if err := orLeft(context.Canceled, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := orLeft(nil, left); !errors.Is(err, left) {
		t.Errorf("got %v", err)
	}
}
