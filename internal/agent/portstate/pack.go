package portstate

import (
	"fmt"
	"math"
	"time"

	agentv1 "heddle/api/heddle/agent/v1"
	hostv1 "heddle/api/heddle/host/v1"
	"heddle/internal/abi"
	"heddle/internal/api/wire"
	"heddle/internal/observe"
	"heddle/internal/spec"
)

// version is the form of the bundle.
const version = 1

// Bounds of what is taken from another host. This version needs less than half of each.
const (
	maxCounts   = 512
	maxName     = 64 // bytes
	maxSettings = 128
	// maxIdle is the longest time without a frame that is told apart, of a MAC and of storm control.
	maxIdle = 1000 * time.Hour
)

// Goods is what belongs to a port and travels with it.
type Goods struct {
	// Complete: nothing is counted after that, because the port was silent.
	Complete bool
	// Base are the port's counters.
	Base observe.Base
	// MACs are the learned ones; only the segment, the address and the idle time count.
	MACs  []observe.MACEntry
	Storm []observe.Spent
	// Parts is what parts of the agent have of it beside that.
	Parts []PartState
	// Settings are what the port sets for itself, each by itself.
	Settings []Setting
	// Blocked is what a command has set; nil for nothing.
	Blocked *bool
	// Unknown says what of the bundle this version does not take over, for people.
	Unknown []string
}

// Setting is one setting of a port's own policy.
type Setting struct {
	// Path is that of the configuration file: "security.macLearning.limit".
	Path   string
	Policy spec.Policy
}

// Pack makes the message. Settings that can't be carried are left out, which the error says.
func Pack(g *Goods, own spec.Policy) (*hostv1.PortBundle, error) {
	b := &hostv1.PortBundle{Version: version, Complete: g.Complete, Blocked: g.Blocked}
	for _, n := range g.Base.Names(observe.Counters{}) {
		b.Counters = append(b.Counters, &hostv1.PortCount{Name: n.Name, Value: n.Value})
	}
	b.Macs, b.Idle = packMACs(g.MACs)
	b.Parts = packParts(g.Parts, len(g.MACs))
	for _, s := range g.Storm {
		b.Storm = append(b.Storm, &hostv1.StormSpent{Class: observe.ClassName(s.Class), Billionths: s.Billionths,
			Idle: millis(s.Idle)})
	}
	var err error
	if b.Policy, err = wire.PutPolicy(own); err != nil {
		return b, fmt.Errorf("what the port sets for itself: %w", err)
	}
	return b, nil
}

const (
	vlanShift = 48
	adBit     = 1 << 60
)

func packMACs(list []observe.MACEntry) (macs []uint64, idle []uint32) {
	if len(list) == 0 {
		return nil, nil
	}
	macs, idle = make([]uint64, len(list)), make([]uint32, len(list))
	for i := range list {
		e := &list[i]
		macs[i] = uint64(e.VLAN) << vlanShift
		if e.AD {
			macs[i] |= adBit
		}
		for k, b := range e.MAC {
			macs[i] |= uint64(b) << (40 - 8*k)
		}
		idle[i] = millis(time.Duration(math.Min(e.Idle, maxIdle.Seconds()) * float64(time.Second)))
	}
	return macs, idle
}

// MACsOf reads learned MACs, at most most. Those that can't be addresses of a station are left out.
func MACsOf(macs []uint64, idle []uint32, most int) (list []observe.MACEntry) {
	n := min(len(macs), len(idle), most)
	list = make([]observe.MACEntry, 0, n)
	for i, m := range macs[:n] {
		e := observe.MACEntry{VLAN: uint16(m >> vlanShift & abi.VIDMask), AD: m&adBit != 0,
			Idle: (time.Duration(idle[i]) * time.Millisecond).Seconds()}
		for k := range e.MAC {
			e.MAC[k] = byte(m >> (40 - 8*k))
		}
		if e.MAC[0]&1 == 0 && !e.MAC.IsZero() && e.VLAN < abi.VIDMask && (!e.AD || e.VLAN != 0) {
			list = append(list, e)
		}
	}
	return list
}

// Unpack takes out what this version knows. At most most MACs are taken.
func Unpack(b *hostv1.PortBundle, most int) *Goods {
	g := &Goods{Complete: b.GetComplete(), MACs: MACsOf(b.GetMacs(), b.GetIdle(), most)}
	if b.Blocked != nil {
		blocked := b.GetBlocked()
		g.Blocked = &blocked
	}
	seen := map[string]bool{}
	for _, n := range b.GetCounters()[:min(maxCounts, len(b.GetCounters()))] {
		name := n.GetName()
		if seen[name] || !plain(name) || n.GetValue() == 0 {
			continue
		}
		seen[name] = true
		if !g.Base.Counters.Set(name, n.GetValue()) {
			g.Base.Others = append(g.Base.Others, observe.Named{Name: name, Value: n.GetValue()})
		}
	}
	g.Storm = storm(b.GetStorm())
	g.settings(b.GetPolicy())
	parts, unknown := partsOf(b.GetParts())
	g.Parts, g.Unknown = parts, append(g.Unknown, unknown...)
	return g
}

// storm reads the used-up allowance, one for each class.
func storm(list []*hostv1.StormSpent) (out []observe.Spent) {
	for class := range abi.Classes {
		for _, s := range list[:min(len(list), abi.Classes*2)] {
			if s.GetClass() == observe.ClassName(class) && s.GetBillionths() > 0 {
				out = append(out, observe.Spent{Class: class, Billionths: s.GetBillionths(),
					Idle: time.Duration(s.GetIdle()) * time.Millisecond})
				break
			}
		}
	}
	return out
}

func (g *Goods) settings(list []*agentv1.PolicySetting) {
	for _, s := range list[:min(maxSettings, len(list))] {
		path := s.GetPolicy()
		if !plain(path) {
			g.Unknown = append(g.Unknown, "a setting without a proper name")
			continue
		}
		p, err := wire.GetPolicy(s)
		if err != nil {
			g.Unknown = append(g.Unknown, path+", which this host's version of Heddle does not know")
			continue
		}
		g.Settings = append(g.Settings, Setting{Path: path, Policy: p})
	}
}

// plain reports whether a name is short, and of printable ASCII characters without spaces.
func plain(name string) bool {
	for i := range len(name) {
		if c := name[i]; c <= ' ' || c >= 0x7f {
			return false
		}
	}
	return name != "" && len(name) <= maxName
}

func millis(d time.Duration) uint32 { return uint32(min(max(d, 0), maxIdle).Milliseconds()) }
