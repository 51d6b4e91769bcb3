package model_test

import (
	"errors"
	"slices"
	"testing"

	"heddle/internal/model"
	"heddle/internal/test/difftest"
	"heddle/internal/test/testkit"
)

// within is the number of frames in which every deliberate mistake must be found. Most need a few hundred.
const within = 40_000

// TestEveryDeliberateFaultIsFound proves that the differential test can fail: it finds a difference between a model
// with one mistake and the right one.
func TestEveryDeliberateFaultIsFound(t *testing.T) {
	found(t, difftest.Reference(), within)
}

// TestKernelTellsEveryDeliberateFault does the same with the kernel program as the right one.
func TestKernelTellsEveryDeliberateFault(t *testing.T) {
	testkit.Long(t, "runs many cases in the kernel for each fault; TestEveryDeliberateFaultIsFound has the model alone")
	testkit.Root(t)
	k, err := difftest.NewKernel()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	}()
	found(t, k, within)
}

func found(t *testing.T, right difftest.Subject, within int) {
	t.Helper()
	names := model.Faults()
	slices.Sort(names)
	b := &difftest.Bench{Got: right} // one for all, because its clock must advance as right's does
	for _, name := range names {
		b.Want = difftest.NewModel(model.NewFaulty(name))
		frames, m, err := b.Hunt(1, within)
		switch {
		case err != nil:
			t.Fatal(errors.Join(errors.New(name), err))
		case m == nil:
			t.Errorf("%s: not found in %d frames", name, frames)
		default:
			t.Logf("%s: found after %d frames", name, frames)
		}
	}
}
