package fabric

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"heddle/internal/plan"
)

// jack is a port of a physical switch, to which an uplink is plugged.
type jack struct {
	sw      string
	vlans   map[uint16]bool // nil = all
	mtu     int
	channel string // ports of one name are bundled
	deaf    bool   // nothing comes out of it
	loss    int    // of so many frames one is lost; 0 = none
	sent    int
}

// cable is a link between two physical switches.
type cable struct {
	a, b  string
	cut   map[uint16]bool // VLANs that it lacks
	mtu   int
	oneAB bool // only from a to b
}

// network is a physical network with hosts.
type network struct {
	t       *testing.T
	jacks   map[End]*jack
	cables  []*cable
	members []Member
	hosts   map[string]*Machine
	now     time.Time
	frames  int
	bytes   int
	split   []Split
	secret  Secret
}

const testMTU = 1500

// racks is a network of hosts with two uplinks each, the first of which is plugged into tor-a and the second into
// tor-b, with a cable between those.
func racks(t *testing.T, hosts int, vlans ...uint16) *network {
	n := &network{t: t, jacks: map[End]*jack{}, hosts: map[string]*Machine{}, now: time.Unix(1e9, 0),
		cables: []*cable{{a: "tor-a", b: "tor-b", mtu: 9216}}, secret: Secrets([]byte("secret"), time.Unix(1e9, 0))[0]}
	for i := range hosts {
		for k, sw := range []string{"tor-a", "tor-b"} {
			e := End{Host: fmt.Sprintf("id%d", i+1), Switch: "prod", Uplink: fmt.Sprintf("uplink%d", k+1)}
			n.jacks[e] = &jack{sw: sw, mtu: 9216}
			n.members = append(n.members, Member{End: e, Name: fmt.Sprintf("h%d", i+1), MTU: testMTU,
				MAC: plan.MAC{2, 0, 0, byte(i >> 8), byte(i), byte(k)}, VLANs: vlans,
				Plug: fmt.Sprintf("port %d of %s", i+1, sw)})
		}
		n.hosts[fmt.Sprintf("id%d", i+1)] = NewMachine()
	}
	return n
}

func (n *network) jack(host, uplink int) *jack {
	return n.jacks[End{fmt.Sprintf("id%d", host), "prod", fmt.Sprintf("uplink%d", uplink)}]
}

// passes returns on which end a frame arrives; false for none.
func (n *network) passes(from, to End, vlan uint16, size int) (End, bool) {
	n.frames++
	n.bytes += size
	a, b := n.jacks[from], n.jacks[to]
	ok := func(j *jack) bool { return (j.vlans == nil || j.vlans[vlan]) && size <= j.mtu }
	if !ok(a) || !ok(b) || b.deaf || a.sw == b.sw && a.channel != "" && a.channel == b.channel {
		return End{}, false
	}
	if a.sent++; a.loss > 0 && a.sent%a.loss == 0 {
		return End{}, false
	}
	reached := map[string]bool{a.sw: true}
	for range n.cables {
		for _, c := range n.cables {
			if c.cut[vlan] || size > c.mtu {
				continue
			}
			if reached[c.a] {
				reached[c.b] = true
			}
			if reached[c.b] && !c.oneAB {
				reached[c.a] = true
			}
		}
	}
	if !reached[b.sw] {
		return End{}, false
	}
	if b.channel != "" {
		for _, m := range n.members { // the channel's first port
			if j := n.jacks[m.End]; m.Host == to.Host && j.channel == b.channel {
				return m.End, true
			}
		}
	}
	return to, true
}

// run lets time pass, and judges.
func (n *network) run(d time.Duration) *Verdict {
	n.t.Helper()
	var v *Verdict
	for end := n.now.Add(d); n.now.Before(end); {
		l := NewLayout(n.members, Epoch(n.now.Unix()), n.split)
		for id, m := range n.hosts {
			m.Set(l.Tasks(id), n.now)
		}
		for range 20 { // two seconds
			for _, m := range n.hosts {
				for _, s := range m.Due(n.now) {
					n.carry(m, s)
				}
			}
			n.now = n.now.Add(100 * time.Millisecond)
		}
		v = n.judge()
		n.split = v.Splits
	}
	return v
}

// carry carries a probe there and back, as bytes.
func (n *network) carry(m *Machine, s Send) {
	frame := n.secret.Frame(s.Probe, plan.MAC{}, s.MAC)
	head := 14
	if s.Task.VLAN != 0 {
		head += 4
	}
	p, err := Read(frame[head:], []Secret{n.secret})
	if err != nil || p != s.Probe {
		n.t.Fatalf("%v: %+v", err, p)
	}
	at, ok := n.passes(s.From(), s.To(), s.Task.VLAN, p.Size)
	if !ok {
		return
	}
	other := n.hosts[at.Host]
	other.Heard(p, n.now)
	if back, ok := n.passes(at, s.From(), s.Task.VLAN, p.Size); ok {
		m.Echo(p.Answer(), back.Uplink, n.now.Add(200*time.Microsecond))
	}
}

func (s Send) From() End { return s.Path.From }
func (s Send) To() End   { return s.Path.To }

func (n *network) judge() *Verdict {
	var results []Result
	var deaf []Deaf
	for _, m := range n.hosts {
		results, deaf = append(results, m.Results()...), append(deaf, m.Deaf()...)
	}
	return Judge(n.members, results, deaf)
}

// said returns the findings' codes, texts and remedies.
func said(v *Verdict) (list []string) {
	for _, f := range v.Findings {
		list = append(list, string(f.Code)+": "+f.Text+" → "+f.Remedy)
	}
	return list
}

func without(vlans []uint16, out ...uint16) map[uint16]bool {
	set := map[uint16]bool{}
	for _, v := range vlans {
		set[v] = !slices.Contains(out, v)
	}
	return set
}
