package dataplane

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/rlimit"

	"heddle/internal/abi"
	"heddle/internal/binding"
	"heddle/internal/dataplane/compile"
	"heddle/internal/overlay"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// CrossingRecorder runs the programs of a switch's tunnel on single frames in the kernel, with tables of its own, and
// records the packets in which a frame would have left, or what became of one that arrived. The caller sets the clock,
// in milliseconds. Its methods are for one goroutine.
type CrossingRecorder struct {
	maps     crossingMaps
	programs crossingPrograms
	slots    *compile.Slots
	overlays *overlays // which writes the tables as it does those of a live switch
	now      time.Duration
	own      map[uint32][]netip.Addr
}

// crossingMaps are the tables that a recorder fills and reads.
type crossingMaps struct {
	tunnelMaps
	Counts         *ebpf.Map `ebpf:"counts"`
	RareCounts     *ebpf.Map `ebpf:"rare_counts"`
	Speakers       *ebpf.Map `ebpf:"neighbour_speakers"`
	CrossingRecord *ebpf.Map `ebpf:"crossing_record"`
	RecordControl  *ebpf.Map `ebpf:"record_control"`
}

type crossingPrograms struct {
	In  *ebpf.Program `ebpf:"heddle_record_in"`
	Out *ebpf.Program `ebpf:"heddle_record_out"`
	// of a trunk inside a VNI
	TrunkIn  *ebpf.Program `ebpf:"heddle_record_trunk_in"`
	TrunkOut *ebpf.Program `ebpf:"heddle_record_trunk_out"`
}

// RecordedOuter is a packet in which a frame would have left, or a copy that was refused.
type RecordedOuter struct {
	// Reason is why it does not leave; ReasonNone where it does.
	Reason abi.Reason
	VNI    uint32
	// From and To are the outer addresses; not valid where there are none.
	From, To netip.Addr
	TOS      byte
}

// RecordedArrival is what became of a frame that arrived: dropped for a reason, or handed to the switch in a segment.
type RecordedArrival struct {
	Reason abi.Reason
	// VNI, VLAN and Priority are those of the tag that the switch gets, read back; for a frame that is handed on.
	VNI      uint32
	VLAN     uint16
	Priority byte
}

// recorderStations is the size of a recorder's tables of stations where these are compared after each frame.
const recorderStations = 8192

// NewCrossingRecorder loads the recording build of the tunnels' programs; needs root. Close it after use.
func NewCrossingRecorder() (*CrossingRecorder, error) { return newCrossingRecorder(nil) }

// NewSmallCrossingRecorder is a recorder with small tables, which are read in a moment.
func NewSmallCrossingRecorder() (*CrossingRecorder, error) {
	return newCrossingRecorder(func(spec *ebpf.CollectionSpec) {
		for _, name := range []string{"bindings", "told_bindings", "neighbour_speakers", "locations"} {
			spec.Maps[name].MaxEntries = recorderStations
		}
	})
}

func newCrossingRecorder(tweak func(*ebpf.CollectionSpec)) (*CrossingRecorder, error) {
	if err := rlimit.RemoveMemlock(); err != nil {
		return nil, fmt.Errorf("lift memory limit for kernel tables: %w", err)
	}
	spec, err := loadOverlay()
	if err != nil {
		return nil, fmt.Errorf("read built-in program of tunnels: %w", err)
	}
	if err := errors.Join(spec.Variables["recording"].Set(true),
		spec.Variables["ticks_per_second"].Set(uint64(1000))); err != nil {
		return nil, err
	}
	if tweak != nil {
		tweak(spec)
	}
	var all struct {
		crossingMaps
		crossingPrograms
	}
	if err := spec.LoadAndAssign(&all, nil); err != nil {
		return nil, fmt.Errorf("load the recording programs of tunnels: %w", explainLoad(err))
	}
	k := &Kernel{slots: compile.NewSlots(), hz: 1000, links: &links{}, log: slog.New(slog.DiscardHandler)}
	r := &CrossingRecorder{maps: all.crossingMaps, programs: all.crossingPrograms, slots: k.slots,
		overlays: &overlays{kernel: k, loaded: true, maps: all.tunnelMaps, written: compile.TunnelTables{
			Tunnels: map[uint32]abi.Tunnel{}, Segments: map[uint32]abi.OverlaySegment{},
			Numbers: map[abi.SegmentName]uint32{}, Endpoints: map[abi.EndpointName]abi.Endpoint{},
			Locations: map[abi.LocationKey]abi.Location{}}}}
	r.overlays.trunks.written = map[uint32]abi.OverlayTrunk{}
	r.overlays.now = func() (uint64, error) { return uint64(r.now.Milliseconds()), nil }
	r.overlays.knowNothing()
	return r, nil
}

// ShowTo has a recorder that gets the same plans read where stations of other hosts are.
func (r *CrossingRecorder) ShowTo(sw *Recorder) error {
	return seesOutside(&sw.objects.vswitchMaps).Show(r.maps.outside())
}

// Close frees the tables and programs.
func (r *CrossingRecorder) Close() error {
	m := &r.maps
	p := &r.programs
	errs := []error{p.In.Close(), p.Out.Close(), p.TrunkIn.Close(), p.TrunkOut.Close()}
	for _, m := range []*ebpf.Map{m.Tunnels, m.OverlaySegments, m.OverlayNumbers, m.EndpointNumbers, m.Locations,
		m.Endpoints, m.OverlayTrunks, m.Bindings, m.ToldBindings, m.NeighbourCounts, m.Speakers, m.Counts,
		m.RareCounts, m.CrossingRecord, m.RecordControl} {
		errs = append(errs, m.Close())
	}
	return errors.Join(errs...)
}

// Set makes the tunnels what the desired state says, as a live switch does. What was learned stays.
func (r *CrossingRecorder) Set(d binding.Desired, now time.Duration) error {
	r.now = now
	a, err := r.slots.Assign(d.Plan)
	if err != nil {
		return err
	}
	if err := r.overlays.prepare(d); err != nil {
		return err
	}
	r.slots.Release(a)
	r.own = map[uint32][]netip.Addr{}
	for _, sw := range d.Plan.Switches {
		if sw.Tunnel != nil {
			r.own[r.slots.Ports[sw.Tunnel.ID]] = d.Facts[sw.Tunnel.ID].Endpoints
		}
	}
	return r.overlays.settle(d)
}

// Locate writes where MACs are, as the controllers say; see Kernel.Locate.
func (r *CrossingRecorder) Locate(sw string, all bool, put []overlay.Location, removed []overlay.Key) error {
	return locator{r.overlays}.Locate(sw, all, put, removed)
}

// Bind writes which MACs have which addresses, as the controllers say; see Kernel.Bind.
func (r *CrossingRecorder) Bind(sw string, all bool, put []overlay.Binding, removed []overlay.Address,
	now time.Duration) error {
	r.now = now
	return locator{r.overlays}.Bind(sw, all, put, removed)
}

// Sweep is the sweep in which the agent looks through what the tunnels have learned.
func (r *CrossingRecorder) Sweep(now time.Duration) error {
	r.now = now
	return errors.Join(r.overlays.sweepShown(), r.overlays.unbindStale())
}

// Leave runs a frame that the switch hands to its tunnel in a VNI, with the tag that it has inside. With a segment size
// the kernel cuts the frame, of which each part has that many bytes of payload. In a segment that the switch does not
// have, the program gets the number of no segment.
func (r *CrossingRecorder) Leave(sw string, vni uint32, frame []byte, size uint32, now time.Duration) ([]RecordedOuter,
	error) {
	list, _, err := r.LeaveFrom(0, sw, vni, frame, size, now)
	return list, err
}

// LeaveFrom is Leave for a frame of a port of this host, and returns also the frame by which the program answers it, an
// ICMP error or that of an address's owner, with the tag that it has inside the VNI; nil for none. Each sender, 1–2047,
// gets so many errors a second.
func (r *CrossingRecorder) LeaveFrom(sender uint32, sw string, vni uint32, frame []byte, size uint32,
	now time.Duration) ([]RecordedOuter, []byte, error) {
	c := abi.CrossingRecord{Sender: sender}
	inner := takeTag(frame, &c)
	vlan := uint16(c.TCI & abi.VIDMask)
	number, ok := r.slots.Segments[compile.OverlaySegment{Switch: sw, VNI: vni, VLAN: vlan}]
	if !ok {
		number = abi.VIDMask - 1
	}
	c.Tag, c.TCI = vlanTag, c.TCI&^abi.VIDMask|uint32(number)
	out, answer, err := r.run(r.programs.Out, sw, inner, &c, size, now)
	if err != nil {
		return nil, nil, err
	}
	list, err := r.packets(out)
	switch {
	case out.Answered == 0:
		answer = nil
	case len(inner) < len(frame):
		answer = slices.Concat(answer[:12], frame[12:16], answer[12:])
	}
	return list, answer, err
}

// packets are those in which a frame would have left.
func (r *CrossingRecorder) packets(out *abi.CrossingRecord) ([]RecordedOuter, error) {
	if out.Count > abi.MaxCrossingCopies {
		return nil, fmt.Errorf("a frame led to %d packets, the recorder holds %d", out.Count, abi.MaxCrossingCopies)
	}
	own := r.own[out.Slot]
	list := make([]RecordedOuter, out.Count)
	for i, p := range out.Copy[:out.Count] {
		o := RecordedOuter{Reason: abi.Reason(p.Reason), VNI: p.Vni, TOS: byte(p.Tos), To: r.addressOf(p.To)}
		if o.Reason == abi.ReasonNone {
			o.From = nth(own, o.To.Is4(), p.Own)
		}
		list[i] = o
	}
	return list, nil
}

// addressOf is the address of an endpoint of another host; not valid for one that is gone.
func (r *CrossingRecorder) addressOf(number uint32) netip.Addr {
	for name, n := range r.overlays.numbers {
		if n == number {
			return compile.AddressOf(r.overlays.written.Endpoints[name])
		}
	}
	return netip.Addr{}
}

// takeTag takes the outermost tag out of a frame, as the kernel does before a program sees the frame.
func takeTag(frame []byte, c *abi.CrossingRecord) []byte {
	t := binary.BigEndian.Uint16(frame[12:])
	if t != vlanTag && t != vlanTagAD {
		return frame
	}
	c.Tag, c.TCI = uint32(t), uint32(binary.BigEndian.Uint16(frame[14:]))
	return append(append([]byte{}, frame[:12]...), frame[16:]...)
}

// vlanTagAD is the EtherType of an 802.1ad tag.
const vlanTagAD = 0x88a8

// nth is one of the addresses of a family.
func nth(list []netip.Addr, ipv4 bool, n uint32) netip.Addr {
	for _, a := range list {
		if a.Is4() != ipv4 {
			continue
		}
		if n == 0 {
			return a
		}
		n--
	}
	return netip.Addr{}
}

// Arrive runs a frame that comes to a switch's tunnel from an outer address, in a VNI, and returns also the packets in
// which this host would have repeated it as a proxy. A frame with a tag must have 20
// bytes: the kernel itself drops a shorter one, before any program.
func (r *CrossingRecorder) Arrive(sw string, from netip.Addr, vni uint32, frame []byte,
	now time.Duration) (a RecordedArrival, repeated []RecordedOuter, _ error) {
	c := abi.CrossingRecord{Vni: vni}
	for i, b := range from.AsSlice() {
		bytesOf(c.From[:])[i] = b
	}
	inner := takeTag(frame, &c)
	out, _, err := r.run(r.programs.In, sw, inner, &c, 0, now)
	if err != nil {
		return a, nil, err
	}
	if repeated, err = r.packets(out); err != nil || out.Passed == 0 {
		return RecordedArrival{Reason: abi.Reason(out.Reason)}, repeated, err
	}
	for seg, n := range r.slots.Segments {
		if seg.Switch == sw && uint32(n) == out.TCI&abi.VIDMask {
			return RecordedArrival{VNI: seg.VNI, VLAN: seg.VLAN, Priority: byte(out.TCI >> 13)}, repeated, nil
		}
	}
	return a, nil, fmt.Errorf("the tunnel's program gave a frame the tag %#x, which is no segment", out.TCI)
}

// run runs a frame and returns what the program wrote down, and what it made of the frame.
func (r *CrossingRecorder) run(program *ebpf.Program, sw string, frame []byte, c *abi.CrossingRecord, size uint32,
	now time.Duration) (*abi.CrossingRecord, []byte, error) {
	slot, ok := r.slots.Ports[plan.PortID{Switch: sw, Name: spec.TunnelName}]
	if !ok {
		return nil, nil, fmt.Errorf("switch %s has no tunnel", sw)
	}
	return r.runAt(program, slot, frame, c, size, now)
}

// runAt is run on the device of the port at a slot.
func (r *CrossingRecorder) runAt(program *ebpf.Program, slot uint32, frame []byte, c *abi.CrossingRecord, size uint32,
	now time.Duration) (*abi.CrossingRecord, []byte, error) {
	c.Slot, r.now = slot, now
	if err := errors.Join(r.maps.CrossingRecord.Put(uint32(0), c),
		r.maps.RecordControl.Put(uint32(0), &abi.RecordControl{Now: uint64(now.Milliseconds())})); err != nil {
		return nil, nil, err
	}
	options := &ebpf.RunOptions{Data: frame, DataOut: make([]byte, len(frame)+256)}
	if size != 0 {
		options.Context = &skbuff{GSOSize: size}
	}
	if _, err := program.Run(options); err != nil {
		return nil, nil, fmt.Errorf("run frame of %d bytes: %w", len(frame), err)
	}
	var out abi.CrossingRecord
	if err := r.maps.CrossingRecord.Lookup(uint32(0), &out); err != nil {
		return nil, nil, err
	}
	return &out, options.DataOut, nil
}

// Cost returns how long the program takes for a frame that leaves in a VNI, on average of as many runs: the kernel's
// own measurement, of the recording build.
func (r *CrossingRecorder) Cost(sw string, vni uint32, frame []byte, runs int) (time.Duration, error) {
	slot, ok := r.slots.Ports[plan.PortID{Switch: sw, Name: spec.TunnelName}]
	number, has := r.slots.Segments[compile.OverlaySegment{Switch: sw, VNI: vni}]
	if !ok || !has {
		return 0, fmt.Errorf("switch %s has no port in VNI %d", sw, vni)
	}
	c := abi.CrossingRecord{Slot: slot, Tag: vlanTag, TCI: uint32(number)}
	if err := r.maps.CrossingRecord.Put(uint32(0), &c); err != nil {
		return 0, err
	}
	_, took, err := r.programs.Out.Benchmark(frame, runs, nil)
	return took, err
}
