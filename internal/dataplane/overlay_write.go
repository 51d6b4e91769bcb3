package dataplane

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"

	"heddle/internal/abi"
	"heddle/internal/binding"
	"heddle/internal/dataplane/compile"
	"heddle/internal/dataplane/entries"
)

// prepare writes what a plan that is about to become active adds; what it no longer has stays until
// settle.
func (o *overlays) prepare(d binding.Desired) error {
	if !hasTunnel(d.Plan) && !o.loaded {
		return nil
	}
	if err := o.open(); err != nil {
		return err
	}
	k := o.kernel
	if err := o.numbers.Assign(d, k.slots, o.retired); err != nil {
		return err
	}
	want := compile.Tunnels(d, k.slots, o.numbers)
	w := &o.written
	if err := o.removeStale(want); err != nil {
		return err
	}
	for name, e := range want.Endpoints {
		was, had := w.Endpoints[name]
		if was == e {
			continue
		}
		number, written := o.numbers[name], e
		if had { // how many MACs are learned behind it is the programs' to count
			var now abi.Endpoint
			if err := o.maps.Endpoints.Lookup(number, &now); err != nil {
				return fmt.Errorf("read endpoint %s of a tunnel: %w", compile.AddressOf(e), err)
			}
			written.Held = now.Held
		}
		if err := errors.Join(o.maps.Endpoints.Put(number, &written),
			o.maps.EndpointNumbers.Put(name, number)); err != nil {
			return fmt.Errorf("write endpoint %s of a tunnel: %w", compile.AddressOf(e), err)
		}
		w.Endpoints[name] = e
	}
	o.stopsLearning(want.Tunnels)
	if err := errors.Join(putNew(o.maps.Tunnels, w.Tunnels, want.Tunnels),
		putNew(o.maps.OverlaySegments, w.Segments, want.Segments),
		putNew(o.maps.OverlayNumbers, w.Numbers, want.Numbers),
		putNew(o.maps.Locations, w.Locations, want.Locations)); err != nil {
		return fmt.Errorf("write the tunnels' tables: %w", err)
	}
	return o.prepareTrunks(want.Trunks)
}

// removeStale removes segments that neither the plan in force nor the next one has: those that settle failed to
// remove, whose numbers may have been given to others since.
func (o *overlays) removeStale(want *compile.TunnelTables) error {
	w, stale := &o.written, map[uint32]bool{}
	for _, name := range compile.Gone(w.Numbers, want.Numbers) {
		if _, stays := want.Tunnels[name.Slot]; !stays {
			continue
		}
		if err := entries.Delete(o.maps.OverlayNumbers, name); err != nil {
			return fmt.Errorf("remove from the tunnels' tables: %w", err)
		}
		stale[name.Slot<<16|w.Numbers[name]] = true
		delete(w.Numbers, name)
	}
	return o.forgetSegments(stale)
}

// forgetSegments forgets what is known of who has what in segments that are gone, by their keys.
func (o *overlays) forgetSegments(gone map[uint32]bool) error {
	if len(gone) == 0 {
		return nil
	}
	return errors.Join(o.sweepShown(), o.unbindStale(), o.forgetTold(gone))
}

// putNew writes the entries that are new or another, and records them.
func putNew[K, V comparable](m *ebpf.Map, had, want map[K]V) error {
	for key, value := range want {
		if was, ok := had[key]; ok && was == value {
			continue
		}
		if err := m.Put(key, &value); err != nil {
			return err
		}
		had[key] = value
	}
	return nil
}

// settle removes what the active plan does not have. No run of a program uses an earlier plan any more.
func (o *overlays) settle(d binding.Desired) error {
	if !o.loaded {
		return nil
	}
	w, want := &o.written, compile.Tunnels(d, o.kernel.slots, o.numbers)
	for _, name := range compile.Gone(w.Endpoints, want.Endpoints) {
		number := o.numbers[name]
		if err := errors.Join(entries.Delete(o.maps.EndpointNumbers, name),
			o.maps.Endpoints.Put(number, &abi.Endpoint{})); err != nil {
			return fmt.Errorf("forget an endpoint of a tunnel: %w", err)
		}
		delete(w.Endpoints, name)
		delete(o.numbers, name)
		o.retired[number] = true
	}
	if err := o.settleTrunks(want.Trunks); err != nil {
		return err
	}
	stale := map[uint32]bool{}
	for _, name := range compile.Gone(w.Numbers, want.Numbers) {
		stale[name.Slot<<16|w.Numbers[name]] = true
	}
	if err := errors.Join(removeGone(o.maps.OverlayNumbers, w.Numbers, want.Numbers),
		removeGone(o.maps.OverlaySegments, w.Segments, want.Segments),
		removeGone(o.maps.Locations, w.Locations, want.Locations),
		removeGone(o.maps.Tunnels, w.Tunnels, want.Tunnels)); err != nil {
		return fmt.Errorf("remove from the tunnels' tables: %w", err)
	}
	return errors.Join(o.forgetSegments(stale), o.forgetLearned(), o.relocate())
}

func removeGone[K comparable, V any](m *ebpf.Map, had, want map[K]V) error {
	for _, key := range compile.Gone(had, want) {
		if err := entries.Delete(m, key); err != nil {
			return err
		}
		delete(had, key)
	}
	return nil
}

// sweepLocationsEvery is in how many sweeps learned locations are looked through.
const sweepLocationsEvery = 30

// sweep removes learned locations that are silent or whose endpoint or segment is gone, and counts those of each
// endpoint anew.
func (o *overlays) sweep() error {
	if !o.loaded {
		return nil
	}
	if o.sweeps++; o.sweeps%sweepLocationsEvery != 0 {
		return nil
	}
	if err := o.sweepShown(); err != nil {
		return err
	}
	return o.unbindStale()
}

// sweepShown removes learned locations that do not count: those that are silent, whose endpoint or segment is gone, and
// those of tunnels that learn no more; and counts those of each endpoint anew.
func (o *overlays) sweepShown() error {
	now, err := o.now()
	if err != nil {
		return err
	}
	located, err := entries.All[abi.LocationKey, abi.Location](o.maps.Locations)
	if err != nil {
		return err
	}
	named := map[uint32]bool{}
	for _, number := range o.numbers {
		named[number] = true
	}
	learns := map[uint32]bool{} // by segment
	for name, number := range o.written.Numbers {
		learns[name.Slot<<16|number] = o.written.Tunnels[name.Slot].Rules&abi.TunnelLearns != 0
	}
	held := map[uint32]uint32{}
	for key, l := range located {
		if l.Source != abi.LocationLearned {
			continue
		}
		if learns[key.Segment] && named[l.Endpoint] && now-l.Seen <= abi.LocationAgeing*o.kernel.hz {
			held[l.Endpoint]++
			continue
		}
		if err := entries.Delete(o.maps.Locations, key); err != nil {
			return fmt.Errorf("forget a learned location: %w", err)
		}
	}
	o.retired = map[uint32]bool{}
	for name, number := range o.numbers {
		e := o.written.Endpoints[name]
		e.Held = held[number]
		if err := o.maps.Endpoints.Put(number, &e); err != nil {
			return fmt.Errorf("count the learned locations of an endpoint: %w", err)
		}
	}
	return nil
}
