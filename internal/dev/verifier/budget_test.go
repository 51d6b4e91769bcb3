package verifier

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heddle/internal/dataplane"
)

func measured(processed int) Measured {
	return Measured{Release: "6.12.9+deb12-amd64", Programs: []dataplane.ProgramCost{
		{Program: "ingress", Instructions: 1000, Processed: processed, States: 50, PeakStates: 40, Stack: 100}}}
}

func TestBudgetIsWrittenReadAndHeld(t *testing.T) {
	file := filepath.Join(t.TempDir(), "b.yaml")
	b := &Budget{TolerancePercent: 10}
	b.Set(measured(20000))
	if err := b.Write(file); err != nil {
		t.Fatal(err)
	}
	b, err := Read(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		processed int
		want      string
	}{{20000, ""}, {10000, ""}, {22000, ""}, {22001, "processed grew from 20000 to 22001, more than 10 %"}} {
		rows, known := b.Compare(measured(c.processed))
		if got := strings.Join(rows[0].Faults, ";"); !known || len(rows) != 1 || got != c.want {
			t.Errorf("%d: %v, %q, want %q", c.processed, known, got, c.want)
		}
	}
	var out strings.Builder
	rows, _ := b.Compare(measured(22001))
	if err := WriteTable(&out, rows); err != nil || !strings.Contains(out.String(), "20000 → 22001 (+10.0 %)") ||
		strings.Contains(out.String(), "1000 →") {
		t.Errorf("table, %v:\n%s", err, &out)
	}
}

func TestBudgetNamesProgramsThatComeAndGo(t *testing.T) {
	b := &Budget{TolerancePercent: 10}
	b.Set(Measured{Release: "6.12.1", Programs: []dataplane.ProgramCost{{Program: "old"}}})
	rows, known := b.Compare(measured(1))
	if !known || len(rows) != 2 || len(rows[0].Faults) != 1 || len(rows[1].Faults) != 1 {
		t.Errorf("%+v", rows)
	}
	other := measured(1)
	other.Release = "6.18.3"
	rows, known = b.Compare(other)
	if known || len(rows) != 1 || len(rows[0].Faults) != 0 {
		t.Errorf("a series that is not in the file: %v, %+v", known, rows)
	}
}

// A cap holds on every kernel, in the file or not, and is kept when the file is written anew.
func TestStackCapsHoldWhateverWasMeasuredBefore(t *testing.T) {
	file := filepath.Join(t.TempDir(), "b.yaml")
	b := &Budget{TolerancePercent: 10, StackCaps: map[string]int{"ingress": 99}}
	b.Set(measured(1)) // its stack is 100
	if err := b.Write(file); err != nil {
		t.Fatal(err)
	}
	b, err := Read(file)
	if err != nil {
		t.Fatal(err)
	}
	other := measured(1)
	other.Release = "6.18.3"
	for _, m := range []Measured{measured(1), other} {
		rows, _ := b.Compare(m)
		if over := b.OverCaps(m); len(rows) != 1 || len(rows[0].Faults) != 1 || len(over) != 1 ||
			!strings.Contains(rows[0].Faults[0], "needs 100 bytes of stack, more than its cap of 99") ||
			!strings.HasPrefix(over[0], "ingress needs 100 bytes") {
			t.Errorf("kernel %s: %+v, %q", m.Release, rows, over)
		}
	}
	b.StackCaps["ingress"] = 100
	if over := b.OverCaps(measured(1)); len(over) > 0 {
		t.Errorf("at its cap: %q", over)
	}
}

// The programs of frames have room for stages to come.
func TestProgramsOfFramesHaveStackCaps(t *testing.T) {
	b, err := Read("../../../bpf/verifier-budget.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for program, most := range map[string]int{"heddle_record": 384, "heddle_ingress_capturing": 400,
		"heddle_ingress": 352, "heddle_ingress_or": 352} {
		if c := b.StackCaps[program]; c == 0 || c > most {
			t.Errorf("%s: a cap of %d, want one of at most %d", program, c, most)
		}
	}
	for kernel, programs := range b.Kernels {
		for name, c := range programs {
			if limit, capped := b.StackCaps[name]; capped && c.Stack > limit {
				t.Errorf("kernel %s: %s needs %d of %d", kernel, name, c.Stack, limit)
			}
		}
	}
}

func TestBudgetFilesThatAreWrongAreRefused(t *testing.T) {
	for text, want := range map[string]string{"tolerance: 3": "tolerance", "tolerancePercent: 200": "0…100",
		"kernels: [": "b.yaml"} {
		t.Run(text, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "b.yaml")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := Read(file); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v", text, err)
			}
		})
	}
}
