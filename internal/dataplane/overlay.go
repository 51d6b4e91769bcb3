package dataplane

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cilium/ebpf"

	"heddle/internal/abi"
	"heddle/internal/binding"
	"heddle/internal/dataplane/compile"
	"heddle/internal/dataplane/entries"
	"heddle/internal/dataplane/outside"
	"heddle/internal/overlay"
	"heddle/internal/plan"
)

// The tunnels' programs have tables of their own, in a directory of their own. A version with other tables gives the
// directory another number and begins anew: what is in it comes from the plan, except for what was learned.
const (
	overlayPrefix = "overlay-"
	overlayDir    = overlayPrefix + "2"
	inDir         = "tunnel-in"
	outDir        = "tunnel-out"
)

// overlays are the programs and tables of the tunnels: a host without overlay segments has none.
type overlays struct {
	kernel  *Kernel
	now     func() (ticks uint64, err error)
	loaded  bool
	dir     string
	maps    tunnelMaps
	limits  tunnelLimits
	live    tunnelPrograms
	in, out *links
	trunks  trunks
	written compile.TunnelTables // what the tables hold
	numbers compile.EndpointNumbers
	// retired are numbers of endpoints that are gone and that learned locations may still have.
	retired map[uint32]bool
	sweeps  int
	// located are where controllers say that MACs are, by switch; announced what the table has of that.
	located   map[string]map[overlay.Key]netip.Addr
	announced announced
	deaf      bool // tunnels learn no more: what they have learned is to be forgotten
}

// tunnelPrograms are what the tunnels' devices run.
type tunnelPrograms struct {
	In  *ebpf.Program `ebpf:"heddle_overlay_in"`
	Out *ebpf.Program `ebpf:"heddle_overlay_out"`
}

// tunnelLimits are the tables by which the programs limit what they answer to one sender.
type tunnelLimits struct {
	ErrorBudgets *ebpf.Map `ebpf:"error_budgets"`
	Speakers     *ebpf.Map `ebpf:"neighbour_speakers"`
}

// pinnedOverlayMaps are the pinned tables of the tunnels' programs.
var pinnedOverlayMaps = []string{"tunnels", "overlay_segments", "overlay_numbers", "endpoint_numbers", "locations",
	"endpoints", "overlay_trunks", "bindings", "told_bindings", "neighbour_counts"}

// scratchOverlayMaps belong to a process's programs alone.
var scratchOverlayMaps = []string{"crossings", "crossing_record", "packets", "record_control",
	"quotes", "error_budgets", "neighbours", "neighbour_speakers"}

// hasTunnel reports whether a switch of the plan has a tunnel.
func hasTunnel(p *plan.Plan) bool {
	return slices.ContainsFunc(p.Switches, func(sw *plan.Switch) bool { return sw.Tunnel != nil })
}

// adoptAll opens the tunnels' tables if an earlier process left some.
func (o *overlays) adoptAll() error {
	k := o.kernel
	entries, err := os.ReadDir(k.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		switch {
		case e.Name() == overlayDir:
			if err := o.open(); err != nil {
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

// open loads the tunnels' programs unless they are loaded.
func (o *overlays) open() error {
	if o.loaded {
		return nil
	}
	k := o.kernel
	o.dir, o.now = filepath.Join(k.dir, overlayDir), k.ticks
	o.knowNothing()
	for _, dir := range []string{o.dir, o.pinDir(inDir), o.pinDir(outDir), o.pinDir(trunkInDir),
		o.pinDir(trunkOutDir)} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("create pin directory: %w", err)
		}
	}
	err := o.load()
	if err != nil {
		return err
	}
	o.in, err = adoptLinks(o.pinDir(inDir), ebpf.AttachTCXIngress, o.live.In, k.log)
	if err == nil {
		o.out, err = adoptLinks(o.pinDir(outDir), ebpf.AttachTCXEgress, o.live.Out, k.log)
	}
	if err == nil {
		err = o.openTrunks()
	}
	if err == nil {
		err = o.adopt(k.slots)
	}
	if err == nil {
		err = o.standIn()
	}
	if err != nil {
		return errors.Join(err, o.close())
	}
	if err := seesOutside(&k.objects.vswitchMaps).Show(o.maps.outside()); err != nil {
		return errors.Join(err, o.close())
	}
	o.loaded = true
	k.flows.whereabouts.maps.Store(&o.maps)
	return nil
}

// knowNothing is the beginning: no endpoint has a number, and nobody has said anything.
func (o *overlays) knowNothing() {
	o.numbers, o.retired = compile.EndpointNumbers{}, map[uint32]bool{}
	o.located, o.announced = map[string]map[overlay.Key]netip.Addr{}, announced{all: map[abi.LocationKey]abi.Location{}}
}

func (o *overlays) load() error {
	k := o.kernel
	spec, err := loadOverlay()
	if err != nil {
		return fmt.Errorf("read built-in program of tunnels: %w", err)
	}
	if err := spec.Variables["ticks_per_second"].Set(k.hz); err != nil {
		return err
	}
	onlyPrograms(spec, "heddle_overlay_in", "heddle_overlay_out", "heddle_trunk_in", "heddle_trunk_out")
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
		tunnelLimits
		tunnelPrograms
		trunkPrograms
	}
	if err := spec.LoadAndAssign(&all, &ebpf.CollectionOptions{Maps: ebpf.MapOptions{PinPath: o.dir},
		MapReplacements: replaced}); err != nil {
		return fmt.Errorf("load the programs of tunnels: %w", explainLoad(err))
	}
	o.maps, o.limits, o.live = all.tunnelMaps, all.tunnelLimits, all.tunnelPrograms
	o.trunks.live = all.trunkPrograms
	return nil
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
	Bindings        *ebpf.Map `ebpf:"bindings"`
	ToldBindings    *ebpf.Map `ebpf:"told_bindings"`
	NeighbourCounts *ebpf.Map `ebpf:"neighbour_counts"`
	OverlayTrunks   *ebpf.Map `ebpf:"overlay_trunks"`
}

func (m *tunnelMaps) outside() outside.Tables {
	return outside.Tables{Locations: m.Locations, Endpoints: m.Endpoints}
}

// seesOutside are the tables by which the switch program finds the tunnels'.
func seesOutside(m *vswitchMaps) outside.Tables {
	return outside.Tables{Locations: m.OutsideLocations, Endpoints: m.OutsideEndpoints}
}

// adopt reads what an earlier process wrote, so that segments and endpoints keep their numbers.
func (o *overlays) adopt(s *compile.Slots) error {
	var err error
	w := &o.written
	if w.Tunnels, err = entries.All[uint32, abi.Tunnel](o.maps.Tunnels); err != nil {
		return err
	}
	if w.Segments, err = entries.All[uint32, abi.OverlaySegment](o.maps.OverlaySegments); err != nil {
		return err
	}
	if w.Numbers, err = entries.All[abi.SegmentName, uint32](o.maps.OverlayNumbers); err != nil {
		return err
	}
	named, err := entries.All[abi.EndpointName, uint32](o.maps.EndpointNumbers)
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
	located, err := entries.All[abi.LocationKey, abi.Location](o.maps.Locations)
	if err != nil {
		return err
	}
	w.Locations = map[abi.LocationKey]abi.Location{}
	for key, l := range located {
		switch l.Source {
		case abi.LocationStatic:
			w.Locations[key] = l
		case abi.LocationAnnounced:
			o.announced.all[key] = l
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

// note records on which devices the tunnels' programs must run.
func (o *overlays) note(d binding.Desired) {
	if !o.loaded {
		return
	}
	want, ports := map[uint32]uint32{}, map[uint32]uint16{}
	for _, sw := range d.Plan.Switches {
		if sw.Tunnel == nil {
			continue
		}
		ports[o.kernel.slots.Ports[sw.Tunnel.ID]] = uint16(sw.Tunnel.Port)
		if at, ok := d.Attachments[sw.Tunnel.ID]; ok {
			want[at.Ifindex] = o.kernel.slots.Ports[sw.Tunnel.ID]
		}
	}
	o.kernel.flows.ports.Store(&ports)
	o.in.note(want)
	o.out.note(want)
	o.trunks.before = nil
	trunks := o.trunkDevices(d)
	o.trunks.in.note(trunks)
	o.trunks.out.note(trunks)
}

// links are the attachments of the tunnels' programs.
func (o *overlays) links() []*links {
	if !o.loaded {
		return nil
	}
	return []*links{o.in, o.out, o.trunks.in, o.trunks.out}
}

func (o *overlays) close() error {
	if o == nil {
		return nil
	}
	var errs []error
	for _, l := range []*links{o.in, o.out, o.trunks.in, o.trunks.out} {
		if l != nil {
			errs = append(errs, l.close())
		}
	}
	for _, p := range []*ebpf.Program{o.live.In, o.live.Out} {
		if p != nil {
			errs = append(errs, p.Close())
		}
	}
	for _, m := range []*ebpf.Map{o.limits.ErrorBudgets, o.limits.Speakers} {
		if m != nil {
			errs = append(errs, m.Close())
		}
	}
	for _, m := range o.pinned() {
		errs = append(errs, m.Close())
	}
	return errors.Join(errs...)
}

// pinned returns the pinned tables, by the names of their pins; none before they are loaded.
func (o *overlays) pinned() map[string]*ebpf.Map {
	all := map[string]*ebpf.Map{"tunnels": o.maps.Tunnels, "overlay_segments": o.maps.OverlaySegments,
		"overlay_numbers": o.maps.OverlayNumbers, "endpoint_numbers": o.maps.EndpointNumbers,
		"locations": o.maps.Locations, "endpoints": o.maps.Endpoints, "bindings": o.maps.Bindings,
		"told_bindings": o.maps.ToldBindings, "neighbour_counts": o.maps.NeighbourCounts,
		"overlay_trunks": o.maps.OverlayTrunks}
	maps.DeleteFunc(all, func(_ string, m *ebpf.Map) bool { return m == nil })
	return all
}

// pinDir is a directory of the instance's pins.
func (o *overlays) pinDir(name string) string { return filepath.Join(o.kernel.dir, name) }
