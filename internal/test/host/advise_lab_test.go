package host

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"heddle/internal/api"
	"heddle/internal/lab/netns"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/cable"
)

// wrongMAC is what the adapter of port other uses.
const wrongMAC = "02:00:00:00:00:ee"

// adviceLab is a host whose devices' far ends, named f-…, are all in one namespace: everything is sent by hand.
type adviceLab struct {
	*host
	far  *netns.NS
	ends map[string]*cable.End
}

func newAdviceLab(t *testing.T) *adviceLab {
	h := newHost(t)
	return &adviceLab{host: h, far: testkit.NS(t, "far"), ends: map[string]*cable.End{}}
}

// wire makes a device and its far end, and opens that. No stack sends anything on it by itself.
func (l *adviceLab) wire(device, mac string) {
	l.t.Helper()
	far := "f-" + strings.TrimPrefix(device, "p-")
	l.ip(fmt.Sprintf("link add %s type veth peer name %s address %s netns %s", device, far, mac, l.far.Name))
	for _, set := range []string{"addrgenmode none", "up"} {
		run(l.t, l.far, "ip link set "+far+" "+set)
	}
	l.ip("link set " + device + " addrgenmode none")
	l.ip("link set " + device + " up")
	l.ends[strings.TrimPrefix(device, "p-")] = cable.Open(l.t, l.far, far)
}

// plug makes the devices of the ports of a configuration, with the ports' addresses, and of the uplinks.
func (l *adviceLab) plug(config string, uplinks ...string) {
	l.t.Helper()
	for line := range strings.Lines(config) {
		var name, mac string
		if at := strings.Index(line, "device: p-"); at >= 0 {
			name, _, _ = strings.Cut(line[at+len("device: p-"):], ",")
			mac = line[strings.Index(line, `mac: "`)+6:][:17]
		}
		switch name {
		case "", "absent":
		case "other":
			l.wire("p-other", wrongMAC)
		default:
			l.wire("p-"+name, mac)
		}
	}
	for i, u := range uplinks {
		l.wire(u, fmt.Sprintf("02:00:00:00:01:%02x", i))
	}
}

// mac is the address of a port of badlySet, by its last byte.
func mac(last byte) [6]byte { return cable.MAC(last) }

func (l *adviceLab) broadcast(from string, source byte, vlan uint16) []byte {
	f := cable.Frame(cable.Broadcast(), mac(source), vlan, from)
	l.ends[from].Send(f)
	return f
}

// advise asks, and gives the findings by rule.
func (l *adviceLab) advise(args ...string) (map[string][]api.Finding, *api.Advice) {
	l.t.Helper()
	out, errs, _ := l.heddle(append([]string{"advise", "-o", "json"}, args...)...)
	a := &api.Advice{}
	if err := json.Unmarshal([]byte(out), a); err != nil {
		l.t.Fatalf("%v\n%s%s", err, out, errs)
	}
	by := map[string][]api.Finding{}
	for _, f := range a.Findings {
		by[f.Rule] = append(by[f.Rule], f)
	}
	return by, a
}
