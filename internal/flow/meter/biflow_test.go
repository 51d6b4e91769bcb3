package meter

import (
	"testing"
	"time"

	"heddle/internal/flow"
	"heddle/internal/plan"
)

var biflows = Settings{ActiveTimeout: time.Minute, IdleTimeout: 15 * time.Second, MaxFlows: 1000, Biflow: true}

func TestBiflowTellsOfBothDirectionsFromTheInitiator(t *testing.T) {
	w := newWorld(t, biflows)
	asked := key(1) // egress: the peer of vm2 asks
	answered, _ := opposite(&asked)
	w.send(asked, 3)
	w.run(time.Second)
	w.send(answered, 4)
	begin := w.now.Wall.UnixMilli()
	w.run(10 * time.Second)
	w.send(asked, 1)
	w.run(14 * time.Second)
	w.none()
	w.run(2 * time.Second)
	r := w.one()
	if r.Key != asked || r.Total.Packets != 4 || r.Reverse == nil || r.Reverse.Total.Packets != 4 ||
		r.Reverse.Start != begin || r.Reason != flow.IdleTimeout {
		t.Errorf("record %+v, reverse %+v", r, r.Reverse)
	}
	w.run(time.Minute)
	w.none()
}

func TestBiflowWithOneDirectionIsAUniflow(t *testing.T) {
	w := newWorld(t, biflows)
	w.send(key(1), 3)
	other := key(2)
	other.Direction = flow.Ingress
	w.send(other, 3)
	w.run(20 * time.Second)
	r := w.take()
	if len(r) != 2 || r[0].Reverse != nil || r[1].Reverse != nil {
		t.Errorf("records %+v", r)
	}
}

func TestBiflowReportsBothDirectionsByTheActiveTimeout(t *testing.T) {
	w := newWorld(t, biflows)
	asked := key(1)
	answered, _ := opposite(&asked)
	var to, fro uint64
	for range 200 {
		w.send(asked, 2)
		w.send(answered, 5)
		w.run(time.Second)
		for _, r := range w.take() {
			to, fro = to+r.Delta.Packets, fro+r.Reverse.Delta.Packets
			if r.Reason != flow.ActiveTimeout || r.Total.Packets != to || r.Reverse.Total.Packets != fro ||
				to*5 != fro*2 {
				t.Errorf("record %+v, reverse %+v", r, r.Reverse)
			}
		}
	}
	if to < 300 {
		t.Errorf("%d packets were told of", to)
	}
}

func TestBiflowEndsWhenBothSidesHaveFinished(t *testing.T) {
	for name, c := range map[string]struct {
		flags [2]uint16
		ends  bool
	}{"one FIN": {[2]uint16{finFlag, 0}, false}, "two FINs": {[2]uint16{finFlag, finFlag}, true},
		"one RST": {[2]uint16{0, rstFlag}, true}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, biflows)
			asked := key(1)
			answered, _ := opposite(&asked)
			for i, k := range []flow.Key{asked, answered} {
				ms := w.now.Wall.UnixMilli()
				w.kernel.count(k, flow.Counts{Packets: 1, Bytes: 40, FrameBytes: 54, First: ms, Last: ms,
					TCPFlags: 0x10 | c.flags[i]})
			}
			w.run(5 * time.Second)
			if r := w.take(); (len(r) == 1) != c.ends || c.ends && r[0].Reason != flow.EndOfFlow {
				t.Errorf("%s: records %+v", name, r)
			}
		})
	}
}

func TestOpposite(t *testing.T) {
	icmp := key(0)
	icmp.Protocol, icmp.SrcPort, icmp.DstPort = protoICMP, 0, 8<<8
	six := icmp
	six.EtherType, six.Protocol, six.DstPort = flow.IPv6, protoICMPv6, 128<<8
	for _, k := range []flow.Key{key(5), icmp, six} {
		o, ok := opposite(&k)
		if !ok || o.Direction != flow.Ingress || o.Src != k.Dst || o.SrcMAC != k.DstMAC || o == k {
			t.Errorf("opposite of %+v is %+v, %v", k, o, ok)
		}
		if back, ok := opposite(&o); !ok || back != k {
			t.Errorf("opposite of the opposite of %+v is %+v", k, back)
		}
	}
	unreachable, broadcast := icmp, key(1)
	unreachable.DstPort = 3<<8 | 1
	broadcast.DstMAC = plan.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	for _, k := range []flow.Key{unreachable, broadcast} {
		if o, ok := opposite(&k); ok {
			t.Errorf("%+v has the opposite %+v", k, o)
		}
	}
}
