package dataplane

import (
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

	"heddle/internal/test/testkit"
)

func TestVerifierLogIsRead(t *testing.T) {
	const log = "func#1 @77\nverification time 812 usec\nstack depth 64+0+24+8\nprocessed 1234 insns (limit 1000000) " +
		"max_states_per_insn 4 total_states 56 peak_states 34 mark_read 7\n"
	program := testCalls("main", "calls a", "calls b", "a", "b", "calls c", "c")
	kept := []string{"main", "a", "b", "c"}
	want := ProgramCost{Program: "p", Processed: 1234, States: 56, PeakStates: 34, Stack: 64 + 32 + 16, // main, b, c
		OldStack: 64 + 32 + 32}
	if got, err := readStats("p", log, program, kept); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	for _, bad := range []string{"", strings.Replace(log, "+24+8", "+24", 1), "stack depth 8\n",
		"processed 3 insns (limit 1000000) max_states_per_insn 0 total_states 0 peak_states 0 mark_read 0\n"} {
		if got, err := readStats("p", bad, program, kept); err == nil {
			t.Errorf("%q gave %+v", bad, got)
		}
	}
}

func TestTheDeepestPathIsOneOfThoseThatAreCalled(t *testing.T) {
	for _, c := range []struct {
		program []string
		depths  []int
		want    int
	}{
		{[]string{"main"}, []int{40}, 48},
		{[]string{"main", "calls a", "a"}, []int{0, 1}, 16},
		{[]string{"main", "calls a", "calls b", "a", "b"}, []int{16, 32, 160}, 176}, // one of the two at a time
		// a loop that is inlined calls a
		{[]string{"main", "hands a", "loops", "a", "calls b", "b"}, []int{40, 32, 48}, 96},
		{[]string{"main", "calls a", "a", "b", "calls c", "c"}, []int{16, 16, 400, 80}, 32}, // nobody calls b
		{[]string{"main", "calls a", "calls b", "a", "calls b", "b"}, []int{16, 64, 16}, 96},
	} {
		program := testCalls(c.program...)
		names, _, _ := callGraph(program)
		if got, err := deepestPath(program, names, c.depths, stackUnit); err != nil || got != c.want {
			t.Errorf("%v: %d, %v; want %d", c.program, got, err, c.want)
		}
	}
}

// The verifier removes a function that is only called in code that never runs, and does not speak of its stack.
func TestFunctionsThatTheVerifierRemovedNeedNoStack(t *testing.T) {
	program := testCalls("main", "calls removed", "calls b", "removed", "calls b", "b")
	if got, err := deepestPath(program, []string{"main", "b"}, []int{64, 32}, stackUnit); err != nil || got != 96 {
		t.Errorf("%d, %v; want 96", got, err)
	}
	if got, err := deepestPath(program, []string{"main", "removed", "b"}, []int{64, 32}, stackUnit); err == nil {
		t.Errorf("two depths of three functions gave %d", got)
	}
}

// testCalls returns a program of functions that call each other, or hand each other to a helper.
func testCalls(words ...string) (program asm.Instructions) {
	for _, w := range words {
		if name, ok := strings.CutPrefix(w, "calls "); ok {
			program = append(program, asm.Instruction{OpCode: asm.OpCode(asm.JumpClass).SetJumpOp(asm.Call),
				Src: asm.PseudoCall, Constant: -1}.WithReference(name))
		} else if name, ok := strings.CutPrefix(w, "hands "); ok {
			program = append(program, asm.Instruction{OpCode: asm.LoadImmOp(asm.DWord), Src: asm.PseudoFunc,
				Constant: -1}.WithReference(name))
		} else if w == "loops" {
			program = append(program, asm.FnLoop.Call())
		} else {
			program = append(program, btf.WithFuncMetadata(asm.Mov.Imm(asm.R0, 0).WithSymbol(w),
				&btf.Func{Name: w, Type: &btf.FuncProto{}}))
		}
	}
	return program
}

func TestVerifierCostsOfAllProgramsAreMeasured(t *testing.T) {
	testkit.Long(t, "loads every variant of every program")
	testkit.Root(t)
	costs, err := MeasureVerifier()
	if err != nil {
		t.Fatal(err)
	}
	spec, err := loadVswitch()
	if err != nil {
		t.Fatal(err)
	}
	tunnels, err := loadOverlay()
	if err != nil {
		t.Fatal(err)
	}
	if want := len(spec.Programs) + len(tunnels.Programs) + 4; len(costs) != want { // two of each also capturing
		t.Errorf("%d costs of %d programs", len(costs), want)
	}
	for _, c := range costs {
		if c.Stack > StackLimit {
			t.Errorf("the kernel took %s, and a path of it is said to need %d bytes of stack of %d", c.Program, c.Stack,
				StackLimit)
		}
		if c.OldStack > StackLimit {
			t.Errorf("kernels before 6.8 refuse %s: a path of it needs %d bytes of stack there, of %d", c.Program,
				c.OldStack, StackLimit)
		}
	}
	ingress := slices.IndexFunc(costs, func(c ProgramCost) bool { return c.Program == "heddle_ingress" })
	if ingress < 0 || costs[ingress].Instructions < 1000 || costs[ingress].Processed < costs[ingress].Instructions/2 ||
		costs[ingress].Stack <= 256 || costs[ingress].Stack > StackLimit {
		t.Errorf("costs are not those of a switch: %+v", costs)
	}
}
