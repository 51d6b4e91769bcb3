package dataplane

import (
	"errors"
	"fmt"
	"maps"

	"github.com/cilium/ebpf"

	"heddle/internal/dataplane/compile"
	"heddle/internal/dataplane/entries"
)

// tunnelStandIn is the part of a capturing build for the tunnels' devices: nothing while no switch has a tunnel.
type tunnelStandIn struct{ capturing, asking *ebpf.Collection }

// shared returns the tables that the tunnels' programs share with a capturing build; nil if they are not loaded.
func (o *overlays) shared() map[string]*ebpf.Map {
	if o.in == nil || o.out == nil {
		return nil
	}
	all := maps.Clone(o.pinned())
	all["error_budgets"], all["neighbour_speakers"] = o.limits.ErrorBudgets, o.limits.Speakers
	return all
}

// loadTunnel loads the tunnels' part of the build, unless there are no tunnels or it is loaded.
func (b *capturingBuild) loadTunnel(k *Kernel, tunnels map[string]*ebpf.Map) (err error) {
	if tunnels == nil || b.tunnel.asking != nil {
		return nil
	}
	shared := k.sharedMaps()
	maps.Copy(shared, tunnels)
	for _, name := range []string{"captures", "capture_control", "capture_counts", "capture_rings", "capture_scratch",
		"capture_segments"} {
		shared[name] = b.capturing.Maps[name]
	}
	var t tunnelStandIn
	if t.capturing, err = loadOnTunnel(k, loadCapturingtunnel, shared, "heddle_overlay_in",
		"heddle_overlay_out"); err != nil {
		return err
	}
	if t.asking, err = loadOnTunnel(k, loadOverlay, shared, "heddle_overlay_in_or",
		"heddle_overlay_out_or"); err != nil {
		t.capturing.Close()
		return err
	}
	for table, program := range map[string]string{"in_stand_in": "heddle_overlay_in",
		"out_stand_in": "heddle_overlay_out"} {
		if err := t.asking.Maps[table].Put(uint32(0), t.capturing.Programs[program]); err != nil {
			t.capturing.Close()
			t.asking.Close()
			return fmt.Errorf("let the capturing build of the tunnels' programs stand in: %w", err)
		}
	}
	b.tunnel = t
	return nil
}

// loadOnTunnel loads programs of a built-in object that work on given tables, as far as they use them.
func loadOnTunnel(k *Kernel, object func() (*ebpf.CollectionSpec, error), shared map[string]*ebpf.Map,
	programs ...string) (*ebpf.Collection, error) {
	spec, err := object()
	if err != nil {
		return nil, fmt.Errorf("read built-in program of tunnels: %w", err)
	}
	if err := spec.Variables["ticks_per_second"].Set(k.hz); err != nil {
		return nil, err
	}
	onlyPrograms(spec, programs...)
	used := map[string]*ebpf.Map{}
	for name, m := range shared {
		if s, ok := spec.Maps[name]; ok {
			s.MaxEntries, used[name] = m.MaxEntries(), m
		}
	}
	c, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: used})
	if err != nil {
		return nil, fmt.Errorf("load the capturing build of the tunnels' programs: %w", explainLoad(err))
	}
	return c, nil
}

// standIn chooses the programs for the tunnels' devices: while a capture runs, those that look for a stand-in.
func (o *overlays) standIn() error {
	if o.in == nil || o.out == nil {
		return nil
	}
	o.in.program, o.out.program = o.live.In, o.live.Out
	b := o.kernel.standIn
	if b == nil {
		return nil
	}
	if err := b.loadTunnel(o.kernel, o.shared()); err != nil {
		return err
	}
	o.in.program, o.out.program =
		b.tunnel.asking.Programs["heddle_overlay_in_or"], b.tunnel.asking.Programs["heddle_overlay_out_or"]
	return nil
}

// know writes the overlay segments that the plan in force has, or the next one, for the programs to show them. A nil
// build knows none.
func (b *capturingBuild) know(s *compile.Slots) error {
	if b == nil {
		return nil
	}
	table := b.capturing.Maps["capture_segments"]
	for seg := range s.Segments {
		n, ok := s.Encode(seg.Switch, seg.VNI, seg.VLAN, false)
		vlan, there := b.known[n]
		if !ok || there && vlan == uint32(seg.VLAN) {
			continue
		}
		if err := table.Put(n, uint32(seg.VLAN)); err != nil {
			return fmt.Errorf("write an overlay segment for captures: %w", err)
		}
		b.known[n] = uint32(seg.VLAN)
	}
	return nil
}

// forget removes the overlay segments that the plan in force does not have.
func (b *capturingBuild) forget(s *compile.Slots) error {
	if b == nil || len(b.known) == 0 {
		return nil
	}
	have := map[uint32]bool{}
	for seg := range s.Segments {
		if n, ok := s.Encode(seg.Switch, seg.VNI, seg.VLAN, false); ok {
			have[n] = true
		}
	}
	var errs []error
	for n := range b.known {
		if !have[n] {
			errs = append(errs, entries.Delete(b.capturing.Maps["capture_segments"], n))
			delete(b.known, n)
		}
	}
	return errors.Join(errs...)
}
