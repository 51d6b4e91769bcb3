package dataplane

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/cilium/ebpf"
)

// capturingBuild replaces the live program on the devices. It is the same program, but first looks in a table for a
// stand-in, which is the capturing build. The kernel empties such a table when the last process that has it open ends.
// So if an agent dies during a capture, nothing is captured any more, and the switch only has one more look-up. The
// next agent attaches the live program again, as it replaces any other program that it finds.
type capturingBuild struct {
	capturing, asking      *ebpf.Collection
	captures               *ebpf.Memory
	control, counts, rings *ebpf.Map
	tunnel                 tunnelStandIn
	known                  map[uint32]uint32 // the content of capture_segments
}

// loadCapturingBuild loads the build with the live programs' tables; tunnels are those of the tunnels' programs, nil if
// they are not loaded.
func loadCapturingBuild(k *Kernel, tunnels map[string]*ebpf.Map) (*capturingBuild, error) {
	b := &capturingBuild{known: map[uint32]uint32{}}
	var err error
	if b.capturing, err = k.loadBeside(loadCapturing, "heddle_ingress", "heddle_egress"); err != nil {
		return nil, err
	}
	if b.asking, err = k.loadBeside(loadVswitch, "heddle_ingress_or", "heddle_egress_or"); err != nil {
		return nil, errors.Join(err, b.close())
	}
	if err := b.loadTunnel(k, tunnels); err != nil {
		return nil, errors.Join(err, b.close())
	}
	debug.FreeOSMemory() // loading takes several times the memory that the build needs afterwards
	if b.captures, err = b.capturing.Maps["captures"].Memory(); err != nil {
		return nil, errors.Join(fmt.Errorf("map the table of captures: %w", err), b.close())
	}
	b.control, b.counts, b.rings =
		b.capturing.Maps["capture_control"], b.capturing.Maps["capture_counts"], b.capturing.Maps["capture_rings"]
	for table, program := range map[string]string{"ingress_stand_in": "heddle_ingress",
		"egress_stand_in": "heddle_egress"} {
		if err := b.asking.Maps[table].Put(uint32(0), b.capturing.Programs[program]); err != nil {
			return nil, errors.Join(fmt.Errorf("let the capturing build stand in: %w", err), b.close())
		}
	}
	return b, nil
}

// loadBeside loads programs of a built-in object that work on the live program's tables.
func (k *Kernel) loadBeside(object func() (*ebpf.CollectionSpec, error), programs ...string) (*ebpf.Collection, error) {
	spec, err := object()
	if err != nil {
		return nil, fmt.Errorf("read built-in program: %w", err)
	}
	if k.tweak.spec != nil {
		k.tweak.spec(spec)
	}
	if err := fit(spec, k.hz); err != nil {
		return nil, err
	}
	onlyPrograms(spec, programs...)
	c, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: k.sharedMaps()})
	if err != nil {
		return nil, fmt.Errorf("load the capturing build of the program: %w", explainLoad(err))
	}
	return c, nil
}

// onlyPrograms leaves some of an object's programs, and gives its tables for captures the size for this machine.
func onlyPrograms(spec *ebpf.CollectionSpec, programs ...string) {
	some := map[string]*ebpf.ProgramSpec{}
	for _, name := range programs {
		some[name] = spec.Programs[name]
	}
	spec.Programs = some
	if m, ok := spec.Maps["capture_scratch"]; ok {
		m.MaxEntries = uint32(ebpf.MustPossibleCPU())
	}
}

func (b *capturingBuild) close() error {
	for _, c := range []*ebpf.Collection{b.asking, b.capturing, b.tunnel.asking, b.tunnel.capturing} {
		if c != nil {
			c.Close()
		}
	}
	return nil
}

// exchangeFor attaches to every device the program that it needs: the one with a stand-in or, if b is nil, the live
// one.
func (k *Kernel) exchangeFor(b *capturingBuild) error {
	k.links.program, k.egress.program = k.objects.HeddleIngress, k.objects.HeddleEgress
	k.standIn = b
	if b != nil {
		if err := b.know(k.slots); err != nil {
			return err
		}
		k.links.program, k.egress.program =
			b.asking.Programs["heddle_ingress_or"], b.asking.Programs["heddle_egress_or"]
	}
	if err := k.overlays.standIn(); err != nil {
		return err
	}
	for _, l := range append(k.overlays.links(), k.links, k.egress) {
		for index := range l.byIndex {
			l.old[index] = true
		}
	}
	return k.exchangePrograms()
}
