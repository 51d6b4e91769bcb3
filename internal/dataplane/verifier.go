package dataplane

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/rlimit"
)

// ProgramCost is what the running kernel's verifier reports about one program.
type ProgramCost struct {
	Program string `json:"program"`
	// Instructions is the length of the program after the verifier has translated it.
	Instructions int `json:"instructions"`
	// Processed is how many instructions the verifier checked on all paths; the kernel's limit is one million.
	Processed int `json:"processed"`
	// States is how many states it stored in all, PeakStates how many at the same time.
	States     int `json:"states"`
	PeakStates int `json:"peakStates"`
	// Stack is the stack of the deepest path of calls, in bytes; the kernel's limit is StackLimit.
	Stack int `json:"stack"`
	// OldStack is what the same path needs on kernels before 6.8, which round the functions' shares up more.
	OldStack int `json:"oldStack"`
}

// MeasureVerifier loads every program, with the tables it needs, and returns what the verifier reports, by name. The
// programs of dry runs are measured as they run: with recording on.
func MeasureVerifier() ([]ProgramCost, error) {
	if err := rlimit.RemoveMemlock(); err != nil {
		return nil, fmt.Errorf("lift memory limit for kernel tables: %w", err)
	}
	var costs []ProgramCost
	for _, b := range []build{live, recording, capturing, tunnels, tunnelRecording, tunnelCapturing} {
		some, err := measureBuild(b)
		if err != nil {
			return nil, err
		}
		costs = append(costs, some...)
	}
	slices.SortFunc(costs, func(a, b ProgramCost) int { return strings.Compare(a.Program, b.Program) })
	return costs, nil
}

// build is a way the programs are loaded.
type build int

const (
	live            build = iota
	recording             // dry runs
	capturing             // replaces the live ones while a capture runs
	tunnels               // of tunnels' devices
	tunnelRecording       // dry runs of these
	tunnelCapturing       // replaces the tunnels' while a capture runs
)

func (b build) spec() (*ebpf.CollectionSpec, error) {
	switch b {
	case capturing:
		return loadCapturing()
	case tunnels, tunnelRecording:
		return loadOverlay()
	case tunnelCapturing:
		return loadCapturingtunnel()
	}
	return loadVswitch()
}

// runs reports whether the program is used in this build.
func (b build) runs(program string) bool {
	switch b {
	case recording, tunnelRecording:
		return strings.HasPrefix(program, "heddle_record")
	case capturing:
		return program == "heddle_ingress" || program == "heddle_egress"
	case tunnelCapturing:
		return program == "heddle_overlay_in" || program == "heddle_overlay_out"
	}
	return !strings.HasPrefix(program, "heddle_record")
}

// measureBuild measures the programs of one build.
func measureBuild(b build) ([]ProgramCost, error) {
	spec, err := b.spec()
	if err != nil {
		return nil, err
	}
	for name := range spec.Programs {
		if !b.runs(name) {
			delete(spec.Programs, name)
		}
	}
	if err := errors.Join(spec.Variables["recording"].Set(b == recording || b == tunnelRecording),
		spec.Variables["ticks_per_second"].Set(uint64(1000))); err != nil {
		return nil, err
	}
	if b < tunnels {
		if err := sizeMeter(spec, 1, placesOf(1)); err != nil {
			return nil, err
		}
	}
	c, err := ebpf.NewCollectionWithOptions(spec,
		ebpf.CollectionOptions{Programs: ebpf.ProgramOptions{LogLevel: ebpf.LogLevelStats}})
	if err != nil {
		return nil, explainLoad(err)
	}
	defer c.Close()
	var costs []ProgramCost
	for name, p := range c.Programs {
		info, err := p.Info()
		if err != nil {
			return nil, err
		}
		kept, err := functionsOf(info)
		if err != nil {
			return nil, err
		}
		cost, err := readStats(name, p.VerifierLog, spec.Programs[name].Instructions, kept)
		if err != nil {
			return nil, err
		}
		size, err := info.TranslatedSize()
		if err != nil {
			return nil, err
		}
		cost.Instructions = size / 8
		if b == capturing || b == tunnelCapturing {
			cost.Program += "_capturing"
		}
		costs = append(costs, cost)
	}
	return costs, nil
}

// The lines that the kernel's verifier ends its log with (kernel/bpf/verifier.c, print_verification_stats).
var (
	stackLine = regexp.MustCompile(`(?m)^stack depth ([0-9+]+)`)
	statsLine = regexp.MustCompile(`(?m)^processed (\d+) insns .* total_states (\d+) peak_states (\d+)`)
)

// functionsOf returns the functions of a loaded program, in their order.
func functionsOf(info *ebpf.ProgramInfo) (names []string, err error) {
	functions, err := info.FuncInfos()
	for _, f := range functions {
		names = append(names, f.Func.Name)
	}
	return names, err
}

// readStats reads the end of a verifier's log about a program with these instructions, of which it has kept these
// functions.
func readStats(program, log string, instructions asm.Instructions, kept []string) (ProgramCost, error) {
	c := ProgramCost{Program: program}
	stats, stack := statsLine.FindStringSubmatch(log), stackLine.FindStringSubmatch(log)
	if stats == nil || stack == nil {
		return c, fmt.Errorf("program %s: this kernel's verifier tells its costs in a form that is not known: %.500q",
			program, log)
	}
	for i, to := range []*int{&c.Processed, &c.States, &c.PeakStates} {
		*to, _ = strconv.Atoi(stats[i+1]) // digits only; a number too large is the largest
	}
	var depths []int // of one function after the other
	for _, part := range strings.Split(stack[1], "+") {
		n, _ := strconv.Atoi(part)
		depths = append(depths, n)
	}
	for unit, to := range map[int]*int{stackUnit: &c.Stack, oldStackUnit: &c.OldStack} {
		var err error
		if *to, err = deepestPath(instructions, kept, depths, unit); err != nil {
			return c, fmt.Errorf("program %s: %w", program, err)
		}
	}
	return c, nil
}
