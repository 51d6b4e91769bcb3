package advise

import (
	"fmt"

	"heddle/internal/api"
	"heddle/internal/plan"
)

// Ability is which offloads and queues the device of a port or uplink has.
type Ability struct {
	Device string
	// Tap: the device is a tap, and its guest decides what it accepts.
	Tap bool
	// Segments and Checksums: the device accepts TCP packets of many frames, and frames without their checksums.
	Segments, Checksums bool
	// Queues is the number of receive queues in use, MaxQueues the number that the device could use; 0 is unknown.
	Queues, MaxQueues int
}

func offloadRules() []Rule {
	return []Rule{
		{"guest-offloads", api.FindingNote, "a guest takes no large packets or computes every checksum",
			"what the guest's driver asked of its tap, where 1,000 frames and more passed",
			"every frame costs a run of the switch and a wake-up of the guest of its own: a few times the CPU for " +
				"the same data",
			"Give the guest a virtio adapter with checksum and segmentation offload, or vhost-net.",
			guestOffloads},
		{"single-queue", api.FindingNote, "a busy uplink receives by one queue and could by more",
			"the queues of the device, and what passes by it in a second: 2 Gb or 100,000 frames and more",
			"one CPU does all the work for what comes in; when it is full, frames are lost while others idle",
			"Give the device more receive queues: ethtool -L DEVICE combined N.",
			singleQueue},
	}
}

// offloadFrames is how many frames a guest must have exchanged before its offloads are worth a finding.
const offloadFrames = 1000

func guestOffloads(l *look) (found []api.Finding) {
	l.eachPort(func(_ *plan.Switch, p *plan.Port, c *counts) {
		a, known := l.Abilities[p.ID]
		if !known || !a.Tap || a.Segments && a.Checksums || c.in()+c.out() < offloadFrames {
			return
		}
		lacks := "neither TCP packets of many frames (TSO) nor frames without checksums"
		switch {
		case a.Segments:
			lacks = "no frames without checksums"
		case a.Checksums:
			lacks = "no TCP packets of many frames (TSO)"
		}
		f := onPort(p, "the guest behind tap %s takes %s; %s passed", a.Device, lacks, frames(c.in()+c.out()))
		f.Change = "Give the guest a paravirtual adapter (virtio-net), or switch its driver's offloads on."
		f.Command = "ethtool -k " + a.Device
		found = append(found, f)
	})
	return found
}

// Rates through an uplink that are high for one queue, and so for one CPU.
const (
	busyBits   = 2_000_000_000
	busyFrames = 100_000
)

func singleQueue(l *look) (found []api.Finding) {
	l.eachUplink(func(_ *plan.Switch, u *plan.Uplink, _ *counts) {
		a, known := l.Abilities[u.ID]
		if !known || a.Queues != 1 || a.MaxQueues < 2 || l.RecentFor <= 0 {
			return
		}
		c := l.recent(u.ID)
		passed, bits := l.aSecond(c.in()+c.out()), l.aSecond(8*c.bytes())
		if passed < busyFrames && bits < busyBits {
			return
		}
		f := onUplink(u, "%s and %.1f Gb a second (%s), by 1 of the %d receive queues that device %s can have",
			frames(passed), float64(bits)/1e9, l.measured(), a.MaxQueues, a.Device)
		f.Change = fmt.Sprintf("Use more of its queues: one for each CPU that should process its frames, up to %d.",
			a.MaxQueues)
		f.Command = "ethtool -l " + a.Device
		found = append(found, f)
	})
	return found
}

// bytes returns the bytes of all frames received and sent.
func (c *counts) bytes() (n uint64) {
	for _, way := range []string{"bytesIn", "bytesOut"} {
		for _, kind := range []string{"Unicast", "Multicast", "Broadcast"} {
			n += c.named[way+kind]
		}
	}
	return n
}
