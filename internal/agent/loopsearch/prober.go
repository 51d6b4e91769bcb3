package loopsearch

import (
	"log/slog"
	"sync"

	"heddle/internal/plan"
	"heddle/internal/uplinks/announce"
	"heddle/internal/uplinks/loops"
)

// prober sends the probes for loops in a goroutine of its own: a thousand ports take some milliseconds. Its socket is
// open only while it sends.
type prober struct {
	log  *slog.Logger
	open func() (announce.Sender, error)
	work chan []outgoing
	done sync.WaitGroup
}

// outgoing is one probe on its way to a device.
type outgoing struct {
	ifindex uint32
	frame   func() []byte
}

func startProber(log *slog.Logger, open func() (announce.Sender, error)) *prober {
	p := &prober{log: log, open: open, work: make(chan []outgoing, 16)}
	p.done.Go(p.run)
	return p
}

// close ends the goroutine.
func (p *prober) close() error {
	close(p.work)
	p.done.Wait()
	return nil
}

// send hands over probes; if too many are queued, these are dropped, and the next round sends others.
func (p *prober) send(list []outgoing) {
	select {
	case p.work <- list:
	default:
		p.log.Warn("probes for loops are not sent: too many wait")
	}
}

func (p *prober) run() {
	for list := range p.work {
		socket, err := p.open()
		if err != nil {
			p.log.Error("no probes for loops", "err", err)
			continue
		}
		for _, o := range list {
			if err := socket.Send(o.ifindex, o.frame()); err != nil {
				p.log.Debug("probe for loops not sent", "ifindex", o.ifindex, "err", err)
			}
		}
		if err := socket.Close(); err != nil {
			p.log.Error("close the socket for probes", "err", err)
		}
	}
}

// probes returns the probes of a round, one for every port and uplink that is in one of its segments and up. Ports
// without loop detection get none.
func (l *Search) probes(s loops.Send) (list []outgoing) {
	for _, seg := range s.Segments {
		sw := l.host.Active().Applied.Plan.Switch(seg.Switch)
		if sw == nil {
			continue
		}
		add := func(id plan.PortID, number uint32, uplink, tagged bool) {
			p := loops.Probe{Uplink: uplink, Number: number, VLAN: seg.VLAN, AD: seg.AD, Round: s.Round}
			list = l.outOf(list, id, func() []byte { return l.sender.Frame(p, tagged) })
		}
		for _, u := range sw.Uplinks {
			if carries(u, seg) {
				add(u.ID, u.Number, true, true)
			}
		}
		for _, p := range sw.Ports {
			v := &p.Policy.VLAN.V
			in := v.Mode == plan.VLANAccess && v.ID == seg.VLAN && !seg.AD || v.Mode == plan.VLANNone && seg.VLAN == 0
			if v.Mode == plan.VLANTrunk {
				_, in = loops.SegmentOf(seg.Switch, v, false, seg.VLAN, seg.AD)
			}
			if in && !p.Policy.Blocked.V && p.Policy.LoopDetection.V {
				add(p.ID, p.Number, false, v.Mode == plan.VLANTrunk)
			}
		}
	}
	return list
}

func carries(u *plan.Uplink, seg loops.Segment) bool { return !u.Blocked && u.VLANs.Has(seg.VLAN) }

// outOf adds a frame that leaves by a port or uplink, if it is connected and up.
func (l *Search) outOf(list []outgoing, id plan.PortID, frame func() []byte) []outgoing {
	at, connected := l.host.Active().Applied.Attachments[id]
	if !connected || !l.host.Active().Applied.Facts[id].Up {
		return list
	}
	return append(list, outgoing{at.Ifindex, frame})
}

// onward returns another host's probe, for every uplink of a segment.
func (l *Search) onward(probe []byte, seg loops.Segment) (list []outgoing) {
	sw := l.host.Active().Applied.Plan.Switch(seg.Switch)
	if sw == nil {
		return nil
	}
	for _, u := range sw.Uplinks {
		if carries(u, seg) {
			list = l.outOf(list, u.ID, func() []byte { return l.sender.Onward(probe, seg.VLAN, seg.AD) })
		}
	}
	return list
}
