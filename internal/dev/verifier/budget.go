package verifier

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"go.yaml.in/yaml/v4"

	"heddle/internal/dataplane"
)

// Cost is the entry of one program.
type Cost struct {
	Instructions int `yaml:"instructions"`
	Processed    int `yaml:"processed"`
	States       int `yaml:"states"`
	PeakStates   int `yaml:"peakStates"`
	Stack        int `yaml:"stack"`
	OldStack     int `yaml:"oldStack"`
}

// Budget is the file.
type Budget struct {
	// TolerancePercent is how far above the file a cost may be: compilers and point releases of a kernel differ a
	// little.
	TolerancePercent int `yaml:"tolerancePercent"`
	// StackLimit is what the kernel allows a path of calls: beside it the costs show what is left.
	StackLimit int `yaml:"stackLimit"`
	// StackCaps is the most stack that a program may need on any kernel, whatever was measured before: the rest up to
	// the limit is for stages to come. Measuring anew does not change it.
	StackCaps map[string]int `yaml:"stackCaps"`
	// Kernels has the costs by kernel series ("6.12") and program.
	Kernels map[string]map[string]Cost `yaml:"kernels"`
}

// Measured is what one kernel says.
type Measured struct {
	Release  string                  `json:"release"`
	Programs []dataplane.ProgramCost `json:"programs"`
}

var seriesForm = regexp.MustCompile(`^[0-9]+\.[0-9]+`)

// Series is the kernel series, such as "6.12".
func (m Measured) Series() string { return seriesForm.FindString(m.Release) }

// Read reads the file. What is not known in it, and a tolerance outside 0…100, are errors.
func Read(path string) (*Budget, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("verifier budget: %w", err)
	}
	defer f.Close()
	b := &Budget{}
	d := yaml.NewDecoder(f)
	d.KnownFields(true)
	if err := d.Decode(b); err != nil {
		return nil, fmt.Errorf("verifier budget %s: %w", path, err)
	}
	if b.TolerancePercent < 0 || b.TolerancePercent > 100 {
		return nil, fmt.Errorf("verifier budget %s: tolerancePercent %d: must be 0…100", path, b.TolerancePercent)
	}
	return b, nil
}

const head = `# What each kernel program costs the verifier of each kernel, as the kernel tells it when the program is loaded.
# Made by "make verifier-budget"; CI fails when a cost is more than tolerancePercent above this file.
# instructions: length after translation; processed: instructions looked at on all paths (the kernel's limit is 1000000);
# states, peakStates: states kept in all and at one time; stack: bytes of the path of calls that needs most (limit: stackLimit).
# oldStack: the same on kernels before 6.8, which round up more.
# stackCaps: the most stack that these programs may need on any kernel. Set by hand, and only ever lower: what is left is
# room for new stages.
`

// Write writes the file.
func (b *Budget) Write(path string) error {
	var text strings.Builder
	text.WriteString(head)
	b.StackLimit = dataplane.StackLimit
	e := yaml.NewEncoder(&text)
	e.SetIndent(2)
	if err := errors.Join(e.Encode(b), e.Close()); err != nil {
		return fmt.Errorf("verifier budget: %w", err)
	}
	return os.WriteFile(path, []byte(text.String()), 0o644)
}

// Set makes what a kernel says the budget of its series.
func (b *Budget) Set(m Measured) {
	if b.Kernels == nil {
		b.Kernels = map[string]map[string]Cost{}
	}
	programs := map[string]Cost{}
	for _, p := range m.Programs {
		programs[p.Program] = costOf(p)
	}
	b.Kernels[m.Series()] = programs
}

func costOf(p dataplane.ProgramCost) Cost {
	return Cost{Instructions: p.Instructions, Processed: p.Processed, States: p.States, PeakStates: p.PeakStates,
		Stack: p.Stack, OldStack: p.OldStack}
}

// Row compares one program with the file.
type Row struct {
	Program string
	// Old is nil for a program that is not in the file, New for one that is in it alone.
	Old, New *Cost
	// Faults says what is wrong: costs above the tolerance, a program too many or too few.
	Faults []string
}

// Compare compares what a kernel reports with the file, program by program in alphabetical order. known is false for a
// kernel series that the file does not have: then only the caps are held.
func (b *Budget) Compare(m Measured) (rows []Row, known bool) {
	old, known := b.Kernels[m.Series()]
	byName := map[string]*Row{}
	for name, c := range old {
		byName[name] = &Row{Program: name, Old: &c}
	}
	for _, p := range m.Programs {
		if byName[p.Program] == nil {
			byName[p.Program] = &Row{Program: p.Program}
		}
		c := costOf(p)
		byName[p.Program].New = &c
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		r := *byName[name]
		if known {
			r.Faults = r.faults(b.TolerancePercent)
		}
		r.Faults = append(r.Faults, b.overCap(r)...)
		rows = append(rows, r)
	}
	return rows, known
}

// OverCaps says which programs need more stack than their caps allow.
func (b *Budget) OverCaps(m Measured) (faults []string) {
	for _, p := range m.Programs {
		c := costOf(p)
		for _, fault := range b.overCap(Row{Program: p.Program, New: &c}) {
			faults = append(faults, p.Program+" "+fault)
		}
	}
	return faults
}

func (b *Budget) overCap(r Row) []string {
	limit, capped := b.StackCaps[r.Program]
	if !capped || r.New == nil || r.New.Stack <= limit {
		return nil
	}
	return []string{fmt.Sprintf("needs %d bytes of stack, more than its cap of %d: keep what a rare stage needs in "+
		"memory of the CPU (bpf/stage/aside.h), or make the stage a function of its own", r.New.Stack, limit)}
}

func (r Row) faults(tolerance int) (faults []string) {
	switch {
	case r.Old == nil:
		return []string{"is not in the file"}
	case r.New == nil:
		return []string{"is in the file, and there is no such program"}
	}
	for i, name := range columns {
		was, is := r.Old.values()[i], r.New.values()[i]
		if is*100 > was*(100+tolerance) {
			faults = append(faults, fmt.Sprintf("%s grew from %d to %d, more than %d %%", name, was, is, tolerance))
		}
	}
	return faults
}

// columns are the names of a cost's values, in the file's words.
var columns = []string{"instructions", "processed", "states", "peakStates", "stack", "oldStack"}

func (c *Cost) values() []int {
	if c == nil {
		return make([]int, len(columns))
	}
	return []int{c.Instructions, c.Processed, c.States, c.PeakStates, c.Stack, c.OldStack}
}

// WriteTable shows each value as "old → new (growth)".
func WriteTable(w io.Writer, rows []Row) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "program\t%s (limit %d)\n", strings.Join(columns, "\t"), dataplane.StackLimit)
	for _, r := range rows {
		line := r.Program
		for i := range columns {
			line += "\t" + cell(r, i)
		}
		fmt.Fprintln(t, line)
	}
	return t.Flush()
}

func cell(r Row, i int) string {
	was, is := r.Old.values()[i], r.New.values()[i]
	switch {
	case r.Old == nil:
		return fmt.Sprintf("new %d", is)
	case r.New == nil:
		return fmt.Sprintf("%d gone", was)
	case was == is:
		return fmt.Sprint(is)
	case was == 0:
		return fmt.Sprintf("0 → %d", is)
	}
	return fmt.Sprintf("%d → %d (%+.1f %%)", was, is, 100*float64(is-was)/float64(was))
}
