package kerneltest

import (
	"testing"

	"github.com/gopacket/gopacket"

	"heddle/internal/flow"
)

// counted is what was counted since the last time, by flow and direction.
func (r *meterRig) counted() map[flow.Key]flow.Counts {
	r.t.Helper()
	all := map[flow.Key]flow.Counts{}
	if err := r.rec.Flows().Drain(func(b flow.Batch) error {
		for i, k := range b.Keys {
			c := all[k]
			c.Add(b.Counts[i])
			all[k] = c
		}
		return nil
	}); err != nil {
		r.t.Fatal(err)
	}
	return all
}

// A frame of a flow that exists is counted by other code than the first frame of a flow, and the first flow of a round,
// which also reserves room for others, by other code than later ones: each frame counts like the first frame of the
// first flow, at every point, whichever path the frame takes.
func TestD6_EachFrameOfAFlowCountsAsTheFirst(t *testing.T) {
	type sent struct {
		what, from string
		send       func(*meterRig)
	}
	frames := []sent{}
	for _, c := range toldFrames(t) {
		frames = append(frames, sent{c.what, "vm1", func(r *meterRig) { r.frame("vm1", c.frame) }})
	}
	udp := func(n int) []byte { return udpFrame(t, 1, n) }
	tagged := udp(100)
	tagged = append(append(append([]byte{}, word("vm1")...), word("vm2")...), append(word("q5"), tagged[12:]...)...)
	outside := udp(100)
	copy(outside, word("ext1"))
	frames = append(frames,
		sent{"a tag", "vm3", func(r *meterRig) { r.frame("vm3", tagged) }},
		sent{"by the uplink", "vm1", func(r *meterRig) { r.frame("vm1", outside) }},
		sent{"three packets", "vm1", func(r *meterRig) { r.gso("vm1", udp(2500), 1000, 3) }},
		sent{"so many as the kernel does not say", "vm1", func(r *meterRig) { r.gso("vm1", udp(2500), 1000, 0) }},
		sent{"more packets than the size gives", "vm1", func(r *meterRig) { r.gso("vm1", udp(2500), 1000, 5) }},
		sent{"packets by the uplink", "vm1", func(r *meterRig) {
			f := udp(2500)
			copy(f, word("ext1"))
			r.gso("vm1", f, 1000, 3)
		}},
	)
	r := newMeterRig(t, metered, "vm1 m", "vm2 m", "vm3 t")
	r.change("monitoring: {ipfix: false}}]", "monitoring: {ipfix: true}}]")
	fromTagged := append([]byte{}, tagged...)
	fromTagged[39] = 9 // another port
	other := map[string][]byte{"vm1": udpFrame(t, 9, 100), "vm3": fromTagged}
	const times = 4
	for _, f := range frames {
		f.send(r)
		once := r.counted()
		for range times {
			f.send(r)
		}
		again := r.counted()
		r.frame(f.from, other[f.from])
		f.send(r)
		later := r.counted()
		if len(once) != 2 || len(again) != 2 || len(later) != 4 {
			t.Errorf("%s: %d flows, %d when it goes on, %d beside others, want one at each end", f.what, len(once),
				len(again), len(later))
		}
		for k, one := range once {
			want, got := one, later[k]
			want.First, want.Last = got.First, got.Last
			if got != want {
				t.Errorf("%s, %v, beside others: %+v, want %+v", f.what, k, got, want)
			}
			want, got = one, again[k]
			want.Packets, want.Bytes, want.FrameBytes = times*one.Packets, times*one.Bytes, times*one.FrameBytes
			want.First, want.Last = got.First, got.Last
			if got != want || got.Last <= got.First {
				t.Errorf("%s, %v: %+v, want %+v", f.what, k, got, want)
			}
		}
	}
}

// What a flow has of all of its frames: the flags of any, the least and the most of their time to live, and where the
// last one went.
func TestD6_AFlowHasWhatAnyOfItsFramesHad(t *testing.T) {
	r := newMeterRig(t, metered, "vm1 m", "vm2 plain")
	for i, ttl := range []byte{64, 3, 200, 64} {
		ip := ip4(6)
		ip.TTL = ttl
		f := packet(t, v4, ip, gopacket.Payload{0, 9, 0, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 1 << i, 0, 0, 0, 0, 0, 0})
		r.frame("vm1", f)
	}
	r.expect(map[string]string{"in vm1 vlan 5 01>02 6 10.0.0.1.9>10.0.0.2.10": "4 packets 160/240 bytes vm1>vm2 " +
		"flags f ttl 3-200 t 1-4"})
}
