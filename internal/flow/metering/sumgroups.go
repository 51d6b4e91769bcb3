package metering

import (
	"bufio"
	"bytes"
	"cmp"
	"io"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"heddle/internal/api"
	"heddle/internal/flow"
	"heddle/internal/flow/meter"
	"heddle/internal/plan"
)

// inGroup is a group that a flow belongs to; back: the flow is the opposite direction, to an address, or from the
// server's end of a conversation.
type inGroup struct {
	of   group
	back bool
}

// groupsOf are the groups of a flow: one, or two by address and port group, for its two ends.
func (s *sums) groupsOf(f *meter.Flow) []inGroup {
	k := &f.Key
	switch s.by {
	case api.ByAddress:
		from, to := endsOf(k)
		from.port, to.port = 0, 0
		if from == to {
			return []inGroup{{group{end: from}, false}}
		}
		return []inGroup{{group{end: from}, false}, {group{end: to}, true}}
	case api.ByPortGroup:
		return s.portGroups(f)
	case api.ByVLAN:
		in := segmentAt(s.once.points[k.Point], k.VLAN)
		return []inGroup{{group{name: in.shown().String(), sw: f.Switch, segment: in}, false}}
	case api.ByProtocol:
		return []inGroup{{group{name: s.words.protocol(k)}, false}}
	case api.ByService:
		g := group{name: s.words.protocol(k)}
		if hasPorts(k) {
			_, g.end.port, _ = s.names.server(k)
		}
		return []inGroup{{g, false}}
	}
	client, server := endsOf(k)
	back := false
	if hasPorts(k) {
		_, _, back = s.names.server(k)
	} else {
		back = client.compare(server) > 0
	}
	if back {
		client, server = server, client
	}
	return []inGroup{{group{name: s.words.protocol(k), sw: f.Switch, segment: segmentAt(s.once.points[k.Point], k.VLAN),
		end: client, other: server}, back}}
}

// endsOf are the ends of a flow, with ports where there are some.
func endsOf(k *flow.Key) (from, to end) {
	from.addr, to.addr = k.Addresses()
	if !from.addr.IsValid() {
		return end{mac: k.SrcMAC}, end{mac: k.DstMAC}
	}
	if hasPorts(k) {
		from.port, to.port = k.SrcPort, k.DstPort
	}
	return from, to
}

// portGroups are the port groups of the ports where a flow comes in and goes out, as far as they are known; for a flow
// to many receivers only the one where it came in.
func (s *sums) portGroups(f *meter.Flow) (in []inGroup) {
	slots := [2]uint16{f.Total.In, f.Key.Point}
	if f.Key.Direction == flow.Ingress {
		slots = [2]uint16{f.Key.Point, f.Total.Out}
	}
	for i, slot := range slots {
		at, known := s.once.points[slot]
		if !known || at.ID.Switch != f.Switch {
			continue
		}
		g := group{name: at.PortGroup, sw: f.Switch}
		if at.Uplink {
			g.name = "uplink " + at.ID.Name
		}
		if len(in) == 0 || in[0].of != g {
			in = append(in, inGroup{g, i == 1})
		}
	}
	if len(in) == 0 {
		in = []inGroup{{group{name: "unknown", sw: f.Switch}, false}}
	}
	return in
}

// row shows a row in the user's words.
func (s *sums) row(r *sumRow) api.FlowSum {
	g := r.of
	out := api.FlowSum{Name: g.name, Switch: g.sw, Flows: r.flows, FlowCounts: r.all.FlowCounts, Rates: r.all.rates}
	switch s.by {
	case api.ByAddress:
		out.Name, out.Source, out.Back = g.end.String(), g.end.addr, r.back
	case api.ByPortGroup:
		out.Back = r.back
	case api.ByVLAN:
		out.VLAN = g.segment.shown()
	case api.ByProtocol:
		out.Protocol = g.name
	case api.ByService:
		out.Protocol, out.DestinationPort = g.name, g.end.port
		if g.end.port != 0 {
			out.Name += "/" + strconv.Itoa(int(g.end.port))
			out.Service = s.names.name(g.name, g.end.port)
		}
	case api.ByConversation:
		out.Name, out.Protocol, out.VLAN, out.Back = g.end.String()+" – "+
			g.other.String(), g.name, g.segment.shown(), r.back
		out.Source, out.SourcePort, out.Destination, out.DestinationPort =
			g.end.addr, g.end.port, g.other.addr, g.other.port
		out.Service = s.names.name(g.name, g.other.port)
	}
	return out
}

func (e end) String() string {
	switch {
	case !e.addr.IsValid():
		return plan.MAC(e.mac).String()
	case e.port == 0:
		return e.addr.String()
	}
	return netip.AddrPortFrom(e.addr, e.port).String()
}

func (e end) compare(o end) int {
	return cmp.Or(e.addr.Compare(o.addr), bytes.Compare(e.mac[:], o.mac[:]), cmp.Compare(e.port, o.port))
}

// services are the names that the host has for ports.
type services map[service]string

type service struct {
	protocol string
	port     uint16
}

// Limits for reading the host's service names.
const (
	servicesFile = "/etc/services"
	mostServices = 1 << 20 // bytes
)

// readServices reads the names; without the file there are none.
func readServices() services {
	f, err := os.Open(servicesFile)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	return parseServices(io.LimitReader(f, mostServices))
}

// parseServices reads lines such as "https 443/tcp # comment". The first name of a port is its name.
func parseServices(from io.Reader) services {
	all := services{}
	for lines := bufio.NewScanner(from); lines.Scan(); {
		text, _, _ := strings.Cut(lines.Text(), "#")
		f := strings.Fields(text)
		if len(f) < 2 {
			continue
		}
		port, protocol, _ := strings.Cut(f[1], "/")
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			continue
		}
		if s := (service{protocol, uint16(n)}); all[s] == "" {
			all[s] = f[0]
		}
	}
	return all
}

func (s services) name(protocol string, port uint16) string { return s[service{protocol, port}] }

// server decides which end of a flow is the server: the one whose port has a name, else the one with the smaller port;
// if both are the same, the one with the smaller address. Both directions of a conversation have the same server. back:
// the source is the server.
func (s services) server(k *flow.Key) (addr netip.Addr, port uint16, back bool) {
	from, to := endsOf(k)
	protocol := protocolNames()[k.Protocol]
	a, b := s.name(protocol, from.port) != "", s.name(protocol, to.port) != ""
	switch {
	case a != b:
		back = a
	case from.port != to.port:
		back = from.port < to.port
	default:
		back = from.compare(to) < 0
	}
	if back {
		return from.addr, from.port, true
	}
	return to.addr, to.port, false
}
