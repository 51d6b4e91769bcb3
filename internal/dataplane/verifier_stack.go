package dataplane

import (
	"fmt"
	"slices"

	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
)

const (
	// StackLimit is the most stack that the kernel allows all functions on one path together (MAX_BPF_STACK), in
	// bytes.
	StackLimit = 512
	// stackUnit is the multiple to which the kernel rounds up each function's share when it compiles the program
	// for the machine (round_up_stack_depth in kernel/bpf/verifier.c, since Linux 6.8).
	stackUnit = 16
	// oldStackUnit is the same on kernels before 6.8, where a function without stack counts as well.
	oldStackUnit = 32
	// loopStack is what a function needs in addition when the kernel replaces the call of bpf_loop by the loop
	// itself (optimize_bpf_loop). It does so after it has checked the limit, and reports the sum.
	loopStack = 24
)

// deepestPath returns the stack, in bytes, of the path of calls that needs most. kept are the functions that the
// verifier has left in the program, in their order, and depths their own needs, as it reports them; it removes
// functions that are only called where a constant forbids it. Like the verifier, deepestPath follows all calls in the
// code, whether or not they are reached. Each function's share is a multiple of unit.
func deepestPath(program asm.Instructions, kept []string, depths []int, unit int) (int, error) {
	names, calls, loops := callGraph(program)
	names = slices.DeleteFunc(names, func(name string) bool { return !slices.Contains(kept, name) })
	if len(names) == 0 || len(names) != len(depths) {
		return 0, fmt.Errorf("the verifier speaks of %d functions, the program has %d", len(depths), len(names))
	}
	own, deepest := map[string]int{}, map[string]int{}
	for i, name := range names {
		own[name] = depths[i]
		if loops[name] && own[name] >= loopStack {
			own[name] -= loopStack
		}
	}
	least := 0
	if unit == oldStackUnit {
		least = 1
	}
	var below func(name string) int // this ends, because no function calls itself
	below = func(name string) int {
		if d, known := deepest[name]; known {
			return d
		}
		most := 0
		for _, callee := range calls[name] {
			most = max(most, below(callee))
		}
		deepest[name] = (max(own[name], least)+unit-1)/unit*unit + most
		return deepest[name]
	}
	return below(names[0]), nil
}

// callGraph returns a program's functions in their order, which other functions each calls or passes to a helper, and
// which ones call bpf_loop.
func callGraph(program asm.Instructions) (names []string, calls map[string][]string, loops map[string]bool) {
	calls, loops = map[string][]string{}, map[string]bool{}
	for i := range program {
		ins := &program[i]
		if f := btf.FuncMetadata(ins); f != nil {
			names = append(names, f.Name)
		}
		if len(names) == 0 {
			continue
		}
		from := names[len(names)-1]
		if ins.IsFunctionReference() {
			calls[from] = append(calls[from], ins.Reference())
		}
		loops[from] = loops[from] || ins.IsBuiltinCall() && asm.BuiltinFunc(ins.Constant) == asm.FnLoop
	}
	return names, calls, loops
}
