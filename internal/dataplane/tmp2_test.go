package dataplane
import ("testing";"slices";"heddle/internal/plan";"github.com/cilium/ebpf";"github.com/cilium/ebpf/asm";"time")
func medianPair(t *testing.T, b *FrameBench, frame []byte) {
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, License: "GPL", Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()}})
	if err != nil { t.Fatal(err) }
	var e, f []time.Duration
	for i := 0; i < 60; i++ { _, d, _ := p.Benchmark(make([]byte,60), 100000, nil); e = append(e, d); d2, _ := b.One(plan.PortID{"lab","vm0"}, frame, 100000); f = append(f, d2) }
	slices.Sort(e); slices.Sort(f)
	t.Log("one: empty min/med", e[0], e[30], "full min/med", f[0], f[30])
}
