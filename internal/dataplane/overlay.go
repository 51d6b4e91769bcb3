package dataplane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cilium/ebpf"

	"heddle/internal/abi"
	"heddle/internal/binding"
	"heddle/internal/dataplane/compile"
	"heddle/internal/plan"
)

// The tunnels' programs have tables of their own, in a directory of their own. A version with other tables gives the
// directory another number and begins anew: what is in it comes from the plan, except for what was learned.
const (
	overlayPrefix = "overlay-"
	overlayDir    = overlayPrefix + "1"
	inDir         = "tunnel-in"
	outDir        = "tunnel-out"
)

// overlays are the programs and tables of the tunnels: a host without overlay segments has none.
type overlays struct {
	dir     string
	maps    tunnelMaps
	in, out *links
	written compile.TunnelTables // what the tables hold
	numbers compile.EndpointNumbers
	// retired are numbers of endpoints that are gone and that learned locations may still have.
	retired map[uint32]bool
	sweeps  int
}

// tunnelPrograms are what the tunnels' devices run.
type tunnelPrograms struct {
	In  *ebpf.Program `ebpf:"heddle_overlay_in"`
	Out *ebpf.Program `ebpf:"heddle_overlay_out"`
}

// pinnedOverlayMaps are the pinned tables of the tunnels' programs.
var pinnedOverlayMaps = []string{"tunnels", "overlay_segments", "overlay_numbers", "endpoint_numbers", "locations",
	"endpoints"}

// scratchOverlayMaps belong to a process's programs alone.
var scratchOverlayMaps = []string{"crossings", "crossing_record", "packets", "record_control"}

// hasTunnel reports whether a switch of the plan has a tunnel.
func hasTunnel(p *plan.Plan) bool {
	return slices.ContainsFunc(p.Switches, func(sw *plan.Switch) bool { return sw.Tunnel != nil })
}

// adoptOverlays opens the tunnels' tables if an earlier process left some.
func (k *Kernel) adoptOverlays() error {
	entries, err := os.ReadDir(k.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		switch {
		case e.Name() == overlayDir:
			if err := k.openOverlays(); err != nil {
				return err
			}
		case strings.HasPrefix(e.Name(), overlayPrefix):
			if err := os.RemoveAll(filepath.Join(k.dir, e.Name())); err != nil {
				return fmt.Errorf("remove the overlay tables of another version: %w", err)
			}
		}
	}
	return nil
}

// openOverlays loads the tunnels' programs unless they are loaded.
func (k *Kernel) openOverlays() error {
	if k.overlays != nil {
		return nil
	}
	o := &overlays{dir: filepath.Join(k.dir, overlayDir), numbers: compile.EndpointNumbers{},
		retired: map[uint32]bool{}}
	for _, dir := range []string{o.dir, filepath.Join(k.dir, inDir), filepath.Join(k.dir, outDir)} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("create pin directory: %w", err)
		}
	}
	programs, err := k.loadOverlays(o)
	if err != nil {
		return err
	}
	o.in, err = adoptLinks(filepath.Join(k.dir, inDir), ebpf.AttachTCXIngress, programs.In, k.log)
	if err == nil {
		o.out, err = adoptLinks(filepath.Join(k.dir, outDir), ebpf.AttachTCXEgress, programs.Out, k.log)
	}
	if err == nil {
		err = o.adopt(k.slots)
	}
	if err != nil {
		return errors.Join(err, o.close())
	}
	k.overlays = o
	return nil
}

func (k *Kernel) loadOverlays(o *overlays) (*tunnelPrograms, error) {
	spec, err := loadOverlay()
	if err != nil {
		return nil, fmt.Errorf("read built-in program of tunnels: %w", err)
	}
	if err := spec.Variables["ticks_per_second"].Set(k.hz); err != nil {
		return nil, err
	}
	delete(spec.Programs, "heddle_record_in")
	delete(spec.Programs, "heddle_record_out")
	shared := k.sharedMaps()
	replaced := map[string]*ebpf.Map{}
	for name, m := range spec.Maps {
		switch {
		case slices.Contains(pinnedOverlayMaps, name):
			m.Pinning = ebpf.PinByName
		case slices.Contains(scratchOverlayMaps, name) || name[0] == '.':
		case slices.Contains(countedInOverlay, name):
			replaced[name] = shared[name]
		default:
			delete(spec.Maps, name)
		}
	}
	var all struct {
		tunnelMaps
		tunnelPrograms
	}
	if err := spec.LoadAndAssign(&all, &ebpf.CollectionOptions{Maps: ebpf.MapOptions{PinPath: o.dir},
		MapReplacements: replaced}); err != nil {
		return nil, fmt.Errorf("load the programs of tunnels: %w", explainLoad(err))
	}
	o.maps = all.tunnelMaps
	return &all.tunnelPrograms, nil
}

// countedInOverlay are the switch program's tables that the tunnels' programs use.
var countedInOverlay = []string{"counts", "rare_counts", "slot_by_ifindex", "slot_by_high_ifindex"}

// tunnelMaps are the tables of tunnels.
type tunnelMaps struct {
	Tunnels         *ebpf.Map `ebpf:"tunnels"`
	OverlaySegments *ebpf.Map `ebpf:"overlay_segments"`
	OverlayNumbers  *ebpf.Map `ebpf:"overlay_numbers"`
	EndpointNumbers *ebpf.Map `ebpf:"endpoint_numbers"`
	Locations       *ebpf.Map `ebpf:"locations"`
	Endpoints       *ebpf.Map `ebpf:"endpoints"`
}

// adopt reads what an earlier process wrote, so that segments and endpoints keep their numbers.
func (o *overlays) adopt(s *compile.Slots) error {
	var err error
	w := &o.written
	if w.Tunnels, err = readAll[uint32, abi.Tunnel](o.maps.Tunnels); err != nil {
		return err
	}
	if w.Segments, err = readAll[uint32, abi.OverlaySegment](o.maps.OverlaySegments); err != nil {
		return err
	}
	if w.Numbers, err = readAll[abi.SegmentName, uint32](o.maps.OverlayNumbers); err != nil {
		return err
	}
	named, err := readAll[abi.EndpointName, uint32](o.maps.EndpointNumbers)
	if err != nil {
		return err
	}
	w.Endpoints = map[abi.EndpointName]abi.Endpoint{}
	for name, number := range named {
		var e abi.Endpoint
		if err := o.maps.Endpoints.Lookup(number, &e); err != nil {
			return fmt.Errorf("read the tunnels' endpoints: %w", err)
		}
		e.Held = 0
		w.Endpoints[name], o.numbers[name] = e, number
	}
	located, err := readAll[abi.LocationKey, abi.Location](o.maps.Locations)
	if err != nil {
		return err
	}
	w.Locations = map[abi.LocationKey]abi.Location{}
	for key, l := range located {
		if l.Source == abi.LocationStatic {
			w.Locations[key] = l
		}
		o.retired[l.Endpoint] = true
	}
	for _, number := range o.numbers {
		delete(o.retired, number)
	}
	tunnels := map[uint32]string{}
	for id, slot := range s.Ports {
		tunnels[slot] = id.Switch
	}
	for name, number := range w.Numbers {
		if sw, ok := tunnels[name.Slot]; ok {
			s.Segments[compile.OverlaySegment{Switch: sw, VNI: name.Vni, VLAN: uint16(name.VLAN)}] = uint16(number)
		}
	}
	return nil
}

// readAll reads a table as a whole.
func readAll[K comparable, V any](m *ebpf.Map) (map[K]V, error) {
	var c contents[K, V]
	if err := c.read(m); err != nil {
		return nil, fmt.Errorf("read the tunnels' tables: %w", err)
	}
	all := make(map[K]V, len(c.keys))
	for i, k := range c.keys {
		all[k] = c.values[i]
	}
	return all, nil
}

// prepareOverlays writes what a plan that is about to become active adds; what it no longer has stays until
// settleOverlays.
func (k *Kernel) prepareOverlays(d binding.Desired) error {
	if !hasTunnel(d.Plan) && k.overlays == nil {
		return nil
	}
	if err := k.openOverlays(); err != nil {
		return err
	}
	o := k.overlays
	if err := o.numbers.Assign(d, k.slots, o.retired); err != nil {
		return err
	}
	want := compile.Tunnels(d, k.slots, o.numbers)
	w := &o.written
	if err := o.removeStale(want); err != nil {
		return err
	}
	for name, e := range want.Endpoints {
		if w.Endpoints[name] == e {
			continue
		}
		number := o.numbers[name]
		if err := errors.Join(o.maps.Endpoints.Put(number, &e), o.maps.EndpointNumbers.Put(name, number)); err != nil {
			return fmt.Errorf("write endpoint %s of a tunnel: %w", compile.AddressOf(e), err)
		}
		w.Endpoints[name] = e
	}
	if err := errors.Join(putNew(o.maps.Tunnels, w.Tunnels, want.Tunnels),
		putNew(o.maps.OverlaySegments, w.Segments, want.Segments),
		putNew(o.maps.OverlayNumbers, w.Numbers, want.Numbers),
		putNew(o.maps.Locations, w.Locations, want.Locations)); err != nil {
		return fmt.Errorf("write the tunnels' tables: %w", err)
	}
	return nil
}

// removeStale removes segments that neither the plan in force nor the next one has: those that settleOverlays failed to
// remove, whose numbers may have been given to others since.
func (o *overlays) removeStale(want *compile.TunnelTables) error {
	w := &o.written
	for _, name := range compile.Gone(w.Numbers, want.Numbers) {
		if _, stays := want.Tunnels[name.Slot]; !stays {
			continue
		}
		if err := remove(o.maps.OverlayNumbers, name); err != nil {
			return fmt.Errorf("remove from the tunnels' tables: %w", err)
		}
		delete(w.Numbers, name)
	}
	return nil
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

// settleOverlays removes what the active plan does not have. No run of a program uses an earlier plan any more.
func (k *Kernel) settleOverlays(d binding.Desired) error {
	o := k.overlays
	if o == nil {
		return nil
	}
	w, want := &o.written, compile.Tunnels(d, k.slots, o.numbers)
	for _, name := range compile.Gone(w.Endpoints, want.Endpoints) {
		number := o.numbers[name]
		if err := errors.Join(remove(o.maps.EndpointNumbers, name),
			o.maps.Endpoints.Put(number, &abi.Endpoint{})); err != nil {
			return fmt.Errorf("forget an endpoint of a tunnel: %w", err)
		}
		delete(w.Endpoints, name)
		delete(o.numbers, name)
		o.retired[number] = true
	}
	if err := errors.Join(removeGone(o.maps.OverlayNumbers, w.Numbers, want.Numbers),
		removeGone(o.maps.OverlaySegments, w.Segments, want.Segments),
		removeGone(o.maps.Locations, w.Locations, want.Locations),
		removeGone(o.maps.Tunnels, w.Tunnels, want.Tunnels)); err != nil {
		return fmt.Errorf("remove from the tunnels' tables: %w", err)
	}
	return nil
}

func removeGone[K comparable, V any](m *ebpf.Map, had, want map[K]V) error {
	for _, key := range compile.Gone(had, want) {
		if err := remove(m, key); err != nil {
			return err
		}
		delete(had, key)
	}
	return nil
}

// remove deletes an entry; it is no error if there is none.
func remove[K any](m *ebpf.Map, key K) error {
	if err := m.Delete(key); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return err
	}
	return nil
}

// noteTunnels records on which devices the tunnels' programs must run.
func (k *Kernel) noteTunnels(d binding.Desired) {
	if k.overlays == nil {
		return
	}
	want := map[uint32]uint32{}
	for _, sw := range d.Plan.Switches {
		if sw.Tunnel == nil {
			continue
		}
		if at, ok := d.Attachments[sw.Tunnel.ID]; ok {
			want[at.Ifindex] = k.slots.Ports[sw.Tunnel.ID]
		}
	}
	k.overlays.in.note(want)
	k.overlays.out.note(want)
}

// tunnelLinks are the attachments of the tunnels' programs.
func (k *Kernel) tunnelLinks() []*links {
	if k.overlays == nil {
		return nil
	}
	return []*links{k.overlays.in, k.overlays.out}
}

// sweepLocationsEvery is in how many sweeps learned locations are looked through.
const sweepLocationsEvery = 30

// sweep removes learned locations that are silent or whose endpoint or segment is gone, and counts those of each
// endpoint anew.
func (o *overlays) sweep(now, hz uint64) error {
	if o.sweeps++; o.sweeps%sweepLocationsEvery != 0 {
		return nil
	}
	located, err := readAll[abi.LocationKey, abi.Location](o.maps.Locations)
	if err != nil {
		return err
	}
	named := map[uint32]bool{}
	for _, number := range o.numbers {
		named[number] = true
	}
	held := map[uint32]uint32{}
	for key, l := range located {
		if l.Source != abi.LocationLearned {
			continue
		}
		_, there := o.written.Segments[key.Segment]
		if there && named[l.Endpoint] && now-l.Seen <= abi.LocationAgeing*hz {
			held[l.Endpoint]++
			continue
		}
		if err := remove(o.maps.Locations, key); err != nil {
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

func (o *overlays) close() error {
	if o == nil {
		return nil
	}
	var errs []error
	for _, l := range []*links{o.in, o.out} {
		if l != nil {
			errs = append(errs, l.close(), l.program.Close())
		}
	}
	for _, m := range o.pinned() {
		if m != nil {
			errs = append(errs, m.Close())
		}
	}
	return errors.Join(errs...)
}

// pinned returns the pinned tables, by the names of their pins.
func (o *overlays) pinned() map[string]*ebpf.Map {
	if o == nil {
		return nil
	}
	return map[string]*ebpf.Map{"tunnels": o.maps.Tunnels, "overlay_segments": o.maps.OverlaySegments,
		"overlay_numbers": o.maps.OverlayNumbers, "endpoint_numbers": o.maps.EndpointNumbers,
		"locations": o.maps.Locations, "endpoints": o.maps.Endpoints}
}
