package captures

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"heddle/internal/abi"
	"heddle/internal/api"
	"heddle/internal/dataplane"
	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/spec/known"
	"heddle/internal/uplinks/wire"
)

// The outer packets of a tunnel are captured by packet sockets on the devices of the underlay, as tcpdump does it, and
// not by a build of the switch's programs: these never see an outer header, which the kernel's VXLAN device adds after
// them and removes before them; the devices of the underlay may belong to nobody, or run programs of others; and a
// filter in the kernel keeps all other packets out, so that a socket costs the host's other traffic next to nothing.
// The agent needs no more for it than it has (CAP_NET_RAW).

// Limits of a capture of outer packets.
const (
	// outerDevices is of how many devices packets are captured at a time.
	outerDevices = 16
	// outerMemory is what the kernel keeps for the readers of all devices together, in bytes: twice as much is
	// counted, with what it needs beside the frames.
	outerMemory = captureMemory / outerDevices
	// captureMemory is that of all devices.
	captureMemory = 16 << 20
	// mostVNIs is how many VNIs may be selected: all of them are compared with each packet.
	mostVNIs = 256
	// outerLook is how often it is looked whether endpoints or routes have changed, at most.
	outerLook = time.Second
)

// Ends are the ends of a switch's tunnel.
type Ends struct {
	Port uint16       // UDP
	Own  []netip.Addr // endpoints of this host
	// Devices are those by which packets go between them and other hosts' endpoints: names by ifindex.
	Devices map[int]string
}

// outer is a capture of outer packets, for one client.
type outer struct {
	of     *Captures
	q      api.Capture
	sw     plan.PortID // the tunnel
	vnis   []uint32    // none for all
	emit   func(api.CaptureEvent) error
	ends   Ends
	taps   map[int]*tapped // by ifindex
	next   uint16
	mu     sync.Mutex // guards what follows, and is held while a frame is sent to the client
	counts api.CaptureCounts
	failed error // of sending a frame
}

// tapped is a device of which packets are captured.
type tapped struct {
	*wire.Tap
	number uint16 // of the port that stands for it
	done   chan struct{}
}

// over reports whether the tap reads no more, as its device went away or down.
func (t *tapped) over() bool {
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}

// captureOuter captures the packets of one tunnel.
func (cs *Captures) captureOuter(ctx context.Context, q api.Capture, emit func(api.CaptureEvent) error) error {
	o := &outer{of: cs, q: q, emit: emit, taps: map[int]*tapped{}}
	if err := cs.host.Look(ctx, func(p *plan.Plan) (err error) {
		if o.sw, err = tunnelOf(p, q); err == nil {
			o.vnis, err = vnisOf(p.Switch(o.sw.Switch), q.Segments)
		}
		return err
	}); err != nil {
		return err
	}
	if o.q.Snap == 0 {
		o.q.Snap = abi.MaxSnap
	}
	defer o.close()
	if err := o.look(ctx); err != nil {
		return err
	}
	id, end := cs.begin()
	defer cs.over(id)
	cs.host.Log.Info("capture of outer packets begins", "capture", id, "switch", o.sw.Switch, "devices", len(o.taps))
	err := o.send(api.CaptureEvent{Started: &api.CaptureStarted{ID: id, Outer: true}})
	if err == nil {
		err = o.follow(ctx, end)
	}
	cs.host.Log.Info("capture of outer packets ends", "capture", id, "selected", o.counts.Selected, "lost",
		o.counts.Lost)
	return err
}

func (o *outer) send(e api.CaptureEvent) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.emit(e)
}

// follow waits for the end. Meanwhile the devices' goroutines send frames, and it sends counts and follows the routes.
func (o *outer) follow(ctx context.Context, end <-chan struct{}) error {
	tick := time.NewTicker(outerLook)
	defer tick.Stop()
	for {
		select {
		case <-end:
			return o.finish(api.CaptureAsked)
		case <-ctx.Done():
			return o.finish(api.CaptureAgentEnds)
		case <-tick.C:
		}
		if err := o.look(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		if err := o.count(""); err != nil {
			return err
		}
	}
}

// look opens taps on devices that are new and closes those of others. If this host's endpoints have changed, all are
// opened anew.
func (o *outer) look(ctx context.Context) error {
	ends, err := o.of.host.Ends(ctx, o.sw.Switch)
	if err != nil {
		return err
	}
	same := slices.Equal(o.ends.Own, ends.Own) && o.ends.Port == ends.Port
	o.ends = ends
	if !mayMatch(o.q.Filter, ends.Port) {
		return api.NewError(api.Invalid, fmt.Sprintf("no packet of the tunnel matches the filter: with --outer it is "+
			"about packets of UDP to port %d over IPv4 or IPv6, and not about the frames inside; leave out --outer, "+
			"or select a segment by --vni", ends.Port))
	}
	for index, t := range o.taps {
		if _, there := ends.Devices[index]; !there || !same || t.over() {
			o.end(t)
			delete(o.taps, index)
		}
	}
	filter := outerFilter(ends.Own, ends.Port, o.vnis, o.q.Filter, o.q.Snap)
	for index, name := range ends.Devices {
		if o.taps[index] != nil || len(o.taps) >= outerDevices || len(ends.Own) == 0 {
			continue
		}
		tap, err := wire.OpenTap(index, filter, outerMemory, abi.MaxSnap)
		if errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENETDOWN) {
			continue // it has just gone
		}
		if err != nil {
			return fmt.Errorf("capture outer packets of device %s: %w", name, err)
		}
		if err := o.begin(index, name, tap); err != nil {
			return errors.Join(err, tap.Close())
		}
	}
	return nil
}

// begin reads from a tap in a goroutine.
func (o *outer) begin(index int, name string, tap *wire.Tap) error {
	o.next++
	t := &tapped{Tap: tap, number: o.next, done: make(chan struct{})}
	if err := o.send(api.CaptureEvent{Port: &api.CapturePort{Number: t.number, Switch: o.sw.Switch, Name: o.sw.Name,
		Uplink: true, Device: name}}); err != nil {
		return err
	}
	o.taps[index] = t
	go func() {
		defer close(t.done)
		for {
			f, err := t.Next()
			if err != nil {
				return // closed, or the device is gone: the next look opens it again if it comes back
			}
			if err := o.frame(t, f); err != nil {
				return
			}
		}
	}()
	return nil
}

func (o *outer) frame(t *tapped, f wire.Tapped) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failed != nil {
		return o.failed
	}
	shown := api.CaptureFrame{Time: f.Time, Port: t.number, Copy: f.Outgoing, Length: uint32(f.Length), Data: f.Frame}
	o.failed = o.emit(api.CaptureEvent{Frame: &shown})
	return o.failed
}

// end stops a tap, waits until what came is read, counts it and closes the tap.
func (o *outer) end(t *tapped) {
	err := t.Stop()
	if err == nil {
		<-t.done
		err = o.tally(t)
	}
	if err = errors.Join(err, t.Close()); err != nil {
		o.of.host.Log.Error("end a capture of outer packets", "err", err)
	}
}

// tally adds what was counted at a tap since it was looked at last.
func (o *outer) tally(t *tapped) error {
	accepted, lost, err := t.Counts()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.counts.Selected, o.counts.Lost = o.counts.Selected+accepted, o.counts.Lost+lost
	return err
}

// all are the taps at present.
func (o *outer) all() []*tapped { return slices.Collect(maps.Values(o.taps)) }

func (o *outer) count(ended api.CaptureEnd) error {
	var errs []error
	for _, t := range o.all() {
		errs = append(errs, o.tally(t))
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.counts.Ended = ended
	counts := o.counts
	return errors.Join(append(errs, o.failed, o.emit(api.CaptureEvent{Counts: &counts}))...)
}

func (o *outer) finish(why api.CaptureEnd) error {
	o.close()
	return o.count(why)
}

// close ends all taps.
func (o *outer) close() {
	for _, t := range o.all() {
		o.end(t)
	}
	clear(o.taps)
}

// tunnelOf finds the tunnel whose outer packets are asked for.
func tunnelOf(p *plan.Plan, q api.Capture) (plan.PortID, error) {
	var faults []string
	for what, list := range map[string][]string{"a stage": q.Stages, "a reason": q.Reasons} {
		if len(list) > 0 {
			faults = append(faults, fmt.Sprintf("an outer packet has not %s: leave that out", what))
		}
	}
	if err := dataplane.CheckFilter(filterOf(q)); err != nil {
		faults = append(faults, err.Error())
	}
	for _, name := range slices.Concat(q.Ports, q.Uplinks) {
		if name != spec.TunnelName {
			faults = append(faults, fmt.Sprintf("%s has no outer packets, only %s has", known.Shown(name),
				spec.TunnelName))
		}
	}
	if q.Snap < 0 || q.Snap > abi.MaxSnap {
		faults = append(faults, fmt.Sprintf("snap length %d: it is 1 to %d bytes, or 0 for whole packets", q.Snap,
			abi.MaxSnap))
	}
	if len(faults) > 0 {
		slices.Sort(faults)
		return plan.PortID{}, api.NewError(api.Invalid, faults...)
	}
	switches := switchesNamed(p, q.Switch)
	if q.Switch != "" && len(switches) == 0 {
		names := known.Names{What: "switch", All: switchNames(p)}
		return plan.PortID{}, api.NewError(api.NotFound, names.Missing(q.Switch))
	}
	with := slices.DeleteFunc(slices.Clone(switches), func(sw *plan.Switch) bool { return sw.Tunnel == nil })
	switch len(with) {
	case 0:
		return plan.PortID{}, api.NewError(api.NotFound, noTunnel(q.Switch)+", and so no outer packets")
	case 1:
		return with[0].Tunnel.ID, nil
	}
	return plan.PortID{}, api.NewError(api.Invalid,
		fmt.Sprintf("%d switches have a tunnel: say which with --switch", len(with)))
}

// noTunnel says that the switch, or none of this host where it is not named, has a tunnel.
func noTunnel(sw string) string {
	if sw == "" {
		return "no switch of this host has a tunnel"
	}
	return fmt.Sprintf("switch %s has no tunnel", sw)
}

// vnisOf are the VNIs by which outer packets are selected.
func vnisOf(sw *plan.Switch, words []string) (list []uint32, err error) {
	var faults, missing []string
	for _, w := range words {
		segments, ok := parseSegments(w)
		switch {
		case !ok && strings.HasPrefix(w, vniPrefix):
			faults = append(faults, badVNI(w))
		case !ok || !segments[0].All:
			faults = append(faults, "outer packets are selected by their VNI as a whole, such as 5000, and not by a "+
				"VLAN")
		default:
			missing = append(missing, inNoVNI(sw, segments[0].VNI)...)
			list = append(list, segments[0].VNI)
		}
	}
	if len(list) > mostVNIs {
		faults = append(faults, fmt.Sprintf("%d VNIs: outer packets are selected by %d at most", len(list), mostVNIs))
	}
	switch {
	case len(faults) > 0:
		return nil, api.NewError(api.Invalid, slices.Concat(missing, faults)...)
	case len(missing) > 0:
		return nil, api.NewError(api.NotFound, missing...)
	}
	return list, nil
}
