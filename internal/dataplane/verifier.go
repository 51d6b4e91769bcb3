package dataplane

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/rlimit"
)

// ProgramCost is what the running kernel's verifier says about one program.
type ProgramCost struct {
	Program string `json:"program"`
	// Instructions is the length of the program after the verifier has translated it.
	Instructions int `json:"instructions"`
	// Processed is how many instructions the verifier looked at on all paths; the kernel's limit is one million.
	Processed int `json:"processed"`
	// States is how many states it kept in all, PeakStates how many at one time.
	States     int `json:"states"`
	PeakStates int `json:"peakStates"`
	// Stack is the stack of the program and of the functions it calls, in bytes; the kernel's limit is 512 along a path.
	Stack int `json:"stack"`
}

// MeasureVerifier loads every program, with tables that go with it, and gives what the verifier says, by name. The programs of
// dry runs are measured as they run: with recording on.
func MeasureVerifier() ([]ProgramCost, error) {
	if err := rlimit.RemoveMemlock(); err != nil {
		return nil, fmt.Errorf("lift memory limit for kernel tables: %w", err)
	}
	spec, err := loadVswitch()
	if err != nil {
		return nil, err
	}
	var costs []ProgramCost
	for _, recording := range []bool{false, true} {
		some, err := measureBuild(spec.Copy(), recording)
		if err != nil {
			return nil, err
		}
		costs = append(costs, some...)
	}
	slices.SortFunc(costs, func(a, b ProgramCost) int { return strings.Compare(a.Program, b.Program) })
	return costs, nil
}

// measureBuild measures the programs of the live or of the recording build.
func measureBuild(spec *ebpf.CollectionSpec, recording bool) ([]ProgramCost, error) {
	for name := range spec.Programs {
		if strings.HasPrefix(name, "heddle_record") != recording {
			delete(spec.Programs, name)
		}
	}
	if err := errors.Join(spec.Variables["recording"].Set(recording), spec.Variables["ticks_per_second"].Set(uint64(1000))); err != nil {
		return nil, err
	}
	c, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{Programs: ebpf.ProgramOptions{LogLevel: ebpf.LogLevelStats}})
	if err != nil {
		return nil, explainLoad(err)
	}
	defer c.Close()
	var costs []ProgramCost
	for name, p := range c.Programs {
		cost, err := readStats(name, p.VerifierLog)
		if err != nil {
			return nil, err
		}
		info, err := p.Info()
		if err != nil {
			return nil, err
		}
		size, err := info.TranslatedSize()
		if err != nil {
			return nil, err
		}
		cost.Instructions = size / 8
		costs = append(costs, cost)
	}
	return costs, nil
}

// The lines that the kernel's verifier ends its log with (kernel/bpf/verifier.c, print_verification_stats).
var (
	stackLine = regexp.MustCompile(`(?m)^stack depth ([0-9+]+)`)
	statsLine = regexp.MustCompile(`(?m)^processed (\d+) insns .* total_states (\d+) peak_states (\d+)`)
)

// readStats reads the end of a verifier's log.
func readStats(program, log string) (ProgramCost, error) {
	c := ProgramCost{Program: program}
	stats, stack := statsLine.FindStringSubmatch(log), stackLine.FindStringSubmatch(log)
	if stats == nil || stack == nil {
		return c, fmt.Errorf("program %s: this kernel's verifier tells its costs in a form that is not known: %.500q", program, log)
	}
	for i, to := range []*int{&c.Processed, &c.States, &c.PeakStates} {
		*to, _ = strconv.Atoi(stats[i+1]) // digits only; a number too large is the largest
	}
	for _, part := range strings.Split(stack[1], "+") {
		n, _ := strconv.Atoi(part)
		c.Stack += n
	}
	return c, nil
}
