package stats

import (
	"slices"
	"strings"

	"heddle/internal/abi"
	"heddle/internal/api"
	"heddle/internal/diagnose/reasons"
)

// Counts are what passed and what did not. In is from the owners into the switch; a frame counts in once, and out once
// for every delivered copy.
type Counts struct {
	PacketsIn  uint64 `json:"packetsIn"`
	BytesIn    uint64 `json:"bytesIn"`
	PacketsOut uint64 `json:"packetsOut"`
	BytesOut   uint64 `json:"bytesOut"`
	// InDropped are dropped frames, OutDropped refused copies by receiver; both without Filtered.
	InDropped  uint64 `json:"inDropped"`
	OutDropped uint64 `json:"outDropped"`
	// Filtered are frames and copies that are dropped in normal operation (reasons.ByDesign): duplicates, and frames
	// without a receiver here.
	Filtered uint64 `json:"filtered"`
	// DeviceLost are frames that a receiver could not accept, as its devices count them (api.DeviceLosses.Lost).
	DeviceLost uint64 `json:"deviceLost"`
	// BroadcastIn and MulticastIn are the parts of PacketsIn that have many receivers.
	BroadcastIn uint64 `json:"broadcastIn"`
	MulticastIn uint64 `json:"multicastIn"`
	// UnknownIn are unicast frames for unknown destinations: those of which ports got copies, those that storm control
	// dropped, and those without a receiver.
	UnknownIn uint64 `json:"unknownIn"`
}

// Rates are Counts per second.
type Rates struct {
	PacketsIn  float64 `json:"packetsIn"`
	BytesIn    float64 `json:"bytesIn"`
	PacketsOut float64 `json:"packetsOut"`
	BytesOut   float64 `json:"bytesOut"`
	InDropped  float64 `json:"inDropped"`
	OutDropped float64 `json:"outDropped"`
	Filtered   float64 `json:"filtered"`
	DeviceLost float64 `json:"deviceLost"`

	BroadcastIn float64 `json:"broadcastIn"`
	MulticastIn float64 `json:"multicastIn"`
	UnknownIn   float64 `json:"unknownIn"`
}

// Line is a port or uplink, a port group, or a switch with its counts.
type Line struct {
	Switch    string `json:"switch"`
	PortGroup string `json:"portGroup,omitempty"`
	// Port is the port's or uplink's name; "" for a sum.
	Port   string `json:"port,omitempty"`
	Uplink bool   `json:"uplink,omitempty"`
	// Ports is how many ports and uplinks the line sums.
	Ports  int    `json:"ports"`
	Counts Counts `json:"counts"`
	// Rates are nil if they are not known: without a previous reading, and after counters were reset.
	Rates *Rates `json:"rates,omitempty"`
}

// By says what each line stands for.
type By string

// The kinds of line.
const (
	Port      By = "port"
	PortGroup By = "port-group"
	Switch    By = "switch"
)

// Uplinks is shown as the port group of lines that sum uplinks, which are in no port group.
const Uplinks = "(uplinks)"

// Of returns the counts of one port.
func Of(s *api.Stats) Counts {
	var c Counts
	for _, n := range s.Counters {
		class := strings.HasSuffix(n.Name, "cast") // Unicast, Multicast, Broadcast
		switch {
		case class && strings.HasPrefix(n.Name, "packetsIn"):
			c.PacketsIn += n.Value
		case class && strings.HasPrefix(n.Name, "bytesIn"):
			c.BytesIn += n.Value
		case class && strings.HasPrefix(n.Name, "packetsOut"):
			c.PacketsOut += n.Value
		case class && strings.HasPrefix(n.Name, "bytesOut"):
			c.BytesOut += n.Value
		case n.Name == "packetsInDropped" || n.Name == "packetsInException":
			c.InDropped += n.Value
		case n.Name == "packetsOutDropped" || n.Name == "packetsOutException":
			c.OutDropped += n.Value
		}
	}
	in, out := Filtered(s.Drops, s.Uplink), Filtered(s.Refused, s.Uplink)
	c.InDropped -= min(in, c.InDropped)
	c.OutDropped -= min(out, c.OutDropped)
	c.Filtered = in + out
	c.DeviceLost = s.Device.Lost() + s.Peer.Lost()
	c.countFlooded(s)
	return c
}

// Filtered returns how many of the counts are normal operation (reasons.ByDesign), at a port or uplink.
func Filtered(counts []api.ReasonNo, uplink bool) (n uint64) {
	for _, c := range counts {
		if r, ok := abi.ParseReason(c.Reason); ok && reasons.ByDesign(r, uplink) {
			n += c.Value
		}
	}
	return n
}

// Key identifies a port or uplink.
type Key struct{ Switch, Name string }

// Reading is one reading of every port.
type Reading map[Key]*api.Stats

// Read converts an agent's answer to a reading.
func Read(all []api.Stats) Reading {
	r := make(Reading, len(all))
	for i := range all {
		r[Key{all[i].Switch, all[i].Name}] = &all[i]
	}
	return r
}

// Lines returns the ports in the order given, with their rates since before, which may be nil.
func Lines(before Reading, now []api.Stats) []Line {
	out := make([]Line, len(now))
	for i := range now {
		s := &now[i]
		out[i] = Line{Switch: s.Switch, PortGroup: s.PortGroup, Port: s.Name, Uplink: s.Uplink, Ports: 1, Counts: Of(s)}
		if b := before[Key{s.Switch, s.Name}]; b != nil {
			out[i].Rates = between(Of(b), out[i].Counts, s.ReadAt-b.ReadAt)
		}
	}
	return out
}

// between returns the rates over a time in nanoseconds; nil if a counter went back.
func between(a, b Counts, ns int64) *Rates {
	if ns <= 0 {
		return nil
	}
	back := false
	per := func(x, y uint64) float64 {
		back = back || y < x
		return float64(y-x) * 1e9 / float64(ns)
	}
	r := &Rates{PacketsIn: per(a.PacketsIn, b.PacketsIn), BytesIn: per(a.BytesIn, b.BytesIn),
		PacketsOut: per(a.PacketsOut, b.PacketsOut),
		BytesOut:   per(a.BytesOut, b.BytesOut), InDropped: per(a.InDropped, b.InDropped),
		OutDropped: per(a.OutDropped, b.OutDropped), Filtered: per(a.Filtered, b.Filtered)}
	r.BroadcastIn, r.MulticastIn, r.UnknownIn = per(a.BroadcastIn, b.BroadcastIn), per(a.MulticastIn,
		b.MulticastIn), per(a.UnknownIn, b.UnknownIn)
	if back {
		return nil
	}
	if b.DeviceLost >= a.DeviceLost { // another device, which counts from 0, must not hide the other rates
		r.DeviceLost = per(a.DeviceLost, b.DeviceLost)
	}
	return r
}

// Sum adds lines up: by port group, with the uplinks of a switch in one line, or by switch. The order is that of the
// first line of each sum. A sum has rates if all its ports have them.
func Sum(lines []Line, by By) []Line {
	if by == Port {
		return lines
	}
	var out []Line
	at := map[Key]int{}
	for _, l := range lines {
		k := Key{Switch: l.Switch}
		if by == PortGroup {
			k.Name = l.PortGroup
			if l.Uplink {
				k.Name = Uplinks
			}
		}
		i, seen := at[k]
		if !seen {
			i = len(out)
			at[k] = i
			out = append(out, Line{Switch: k.Switch, PortGroup: k.Name, Uplink: l.Uplink && by == PortGroup,
				Rates: &Rates{}})
		}
		out[i].add(l)
	}
	return out
}

func (l *Line) add(m Line) {
	l.Ports += m.Ports
	a, b := &l.Counts, &m.Counts
	a.PacketsIn += b.PacketsIn
	a.BytesIn += b.BytesIn
	a.PacketsOut += b.PacketsOut
	a.BytesOut += b.BytesOut
	a.InDropped += b.InDropped
	a.OutDropped += b.OutDropped
	a.Filtered += b.Filtered
	a.DeviceLost += b.DeviceLost
	a.BroadcastIn += b.BroadcastIn
	a.MulticastIn += b.MulticastIn
	a.UnknownIn += b.UnknownIn
	if l.Rates == nil || m.Rates == nil {
		l.Rates = nil
		return
	}
	r, s := l.Rates, m.Rates
	r.PacketsIn += s.PacketsIn
	r.BytesIn += s.BytesIn
	r.PacketsOut += s.PacketsOut
	r.BytesOut += s.BytesOut
	r.InDropped += s.InDropped
	r.OutDropped += s.OutDropped
	r.Filtered += s.Filtered
	r.DeviceLost += s.DeviceLost
	r.BroadcastIn += s.BroadcastIn
	r.MulticastIn += s.MulticastIn
	r.UnknownIn += s.UnknownIn
}

// Kinds returns the words for By.
func Kinds() []string { return []string{string(Port), string(PortGroup), string(Switch)} }

// Valid reports whether by is one of the kinds.
func (by By) Valid() bool { return slices.Contains(Kinds(), string(by)) }
