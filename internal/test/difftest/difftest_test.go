package difftest

import (
	"path/filepath"
	"reflect"
	"testing"

	"heddle/internal/plan"
)

// regressions is where cases are kept that once failed, and are played each time.
const regressions = "testdata/regressions"

// failures is where a case goes that fails: git ignores it, and it is played again once somebody has moved it to the
// regressions.
const failures = "testdata/failures"

func TestGeneratorIsDeterministicAndItsCasesSurviveTheirFile(t *testing.T) {
	for seed := range uint64(20) {
		a, b := Generate(seed, 60), Generate(seed, 60)
		path := filepath.Join(t.TempDir(), "case.yaml")
		if err := a.Save(path); err != nil {
			t.Fatal(err)
		}
		c, err := Load(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Save(path); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(a.Steps[0], b.Steps[0]) || len(a.Steps) != len(b.Steps) {
			t.Fatalf("seed %d gives different cases", seed)
		}
		bench := &Bench{Want: Reference(), Got: Reference()}
		whole, m, err := bench.Play(a)
		if err != nil || m != nil {
			t.Fatalf("seed %d: %v %v", seed, m, err)
		}
		again, m, err := bench.Play(c)
		if err != nil || m != nil || whole != again {
			t.Fatalf("seed %d from its file: %d frames instead of %d, %v %v", seed, again, whole, m, err)
		}
		samePlans(t, &a.State, &c.State)
	}
}

func samePlans(t *testing.T, a, b *State) {
	t.Helper()
	pa, fa, err := a.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	pb, fb, err := b.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(pa, pb) || !reflect.DeepEqual(fa, fb) {
		t.Fatal("a state read from its file resolves differently")
	}
}

// TestCasesReachEveryRule guards the generator: a run too tame to provoke a rule would prove nothing about it.
func TestCasesReachEveryRule(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(60) {
		m := NewModel(newModel)
		spy := &spy{Subject: m, seen: seen}
		if _, err := Run(seed, spy, Reference(), 1); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range everyReason() {
		if seen["dropped "+r] == 0 && seen["refused "+r] == 0 {
			t.Errorf("no frame met %s", r)
		}
	}
	for _, what := range []string{"delivered", "host", "copy to an uplink", "copy with a tag", "learned",
		"to host by an uplink", "from host: kept", "from host: copied", "from host: dropped"} {
		if seen[what] == 0 {
			t.Errorf("nothing seen of: %s", what)
		}
	}
	if seen["delivered"]*3 < seen["frames"] {
		t.Errorf("only %d of %d frames were delivered: the cases are too hostile", seen["delivered"], seen["frames"])
	}
	t.Logf("%v", seen)
}

// TestModelKeepsIsolation plays random cases for the isolation check alone, which knows nothing of the model.
func TestModelKeepsIsolation(t *testing.T) {
	r, err := Run(1000, Reference(), Reference(), 60_000)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d frames of %d cases", r.Frames, r.Cases)
}

func TestIsolationSeesBreaches(t *testing.T) {
	breaches(t, func(name string, at plan.PortID, frame []byte, o Outcome, g *Isolation) {
		if g.Check(at, frame, o) == "" {
			t.Errorf("not seen: %s", name)
		}
	})
}
