package chaos

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/vishvananda/netlink"

	"heddle/internal/api"
	"heddle/internal/lab/netns"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/cable"
	"heddle/internal/test/testkit/leaks"
	"heddle/internal/test/testkit/realhost"
)

// rig is a fleet: machines on a management network, hosts among them with guests on a network of their own.
type rig struct {
	t           *testing.T
	network     *netns.NS // has the bridges of both networks
	controllers []*realhost.Controller
	hosts       []*node
	members     []*member // of an outside etcd
	history     *History
	tokens      tokens
	nomads      []*nomad

	mu       sync.Mutex // guards what follows
	random   *rand.Rand
	problems map[string]int // what calls failed with
	// abandoned are VMs that do not run, of which nobody knows whether they have a port.
	abandoned map[string]bool
}

// node is a host. Its agent's socket answers while the agent runs.
type node struct {
	*realhost.Host
	number int
	name   string
	guests map[string]*cable.End // by device
}

// definition is what the fleet begins with. Guests are connected to web, left and right; a change gives left and right
// one VLAN. Nobody uses the spare port groups. The marker is a host that never comes: each change has a label of its
// own there.
const definition = `
switches:
- name: dvs
  uplinks: [{name: uplink1}]
  portGroups:
  - {name: web, vlan: {access: 10}}
  - {name: left, vlan: {access: 100}}
  - {name: right, vlan: {access: 100}}
  - {name: spare0, vlan: {access: 200}}
  - {name: spare1, vlan: {access: 201}}
  - {name: spare2, vlan: {access: 202}}
  - {name: fixed, vlan: {access: 30}, binding: static, ports: {number: 6}}
templates:
- name: all
  labels: {rack: a}
  switches: [{name: dvs, uplinks: [{name: uplink1, device: eno2}]}]
hosts:
- {name: marker, labels: {change: first}}
`

// fixedPorts is how many static ports the port group fixed has, for eight VMs at a time that want one.
const fixedPorts = 6

// places are the devices of each host for such VMs.
var places = []string{"p-fixed1", "p-fixed2"}

// guests are the devices of each host, and the port groups that they are in.
var guests = []struct{ device, group string }{{"p-web", "web"}, {"p-left", "left"}, {"p-right", "right"}}

// newRig makes the networks and the machines, with an etcd of so many members outside of the controllers. Nothing runs.
func newRig(t *testing.T, fleet Fleet, random *rand.Rand) *rig {
	t.Helper()
	leaks.Watch(t)
	testkit.Weigh(t, 2)
	r := &rig{t: t, network: testkit.NS(t, "network"), history: NewHistory(), random: random,
		problems: map[string]int{}, abandoned: map[string]bool{},
		tokens: tokens{known: map[string]tokenFate{}}}
	r.inside(r.network, func() error {
		for _, name := range []string{"mgmt", "data"} {
			if err := errors.Join(netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: name}}),
				up(name)); err != nil {
				return err
			}
		}
		return nil
	})
	for i := range fleet.Members {
		r.members = append(r.members, r.newMember(i, fleet.Members))
	}
	for i := range fleet.Controllers {
		name, address := fmt.Sprintf("controller%d", i+1), fmt.Sprintf("10.0.0.%d", 101+i)
		c := realhost.NewController(t, r.machine(name, "c", i, address), address+":7411")
		c.Name = name
		r.controllers = append(r.controllers, c)
	}
	for i := range fleet.Hosts {
		ns := r.machine(fmt.Sprintf("host%d", i), "h", i, fmt.Sprintf("10.0.0.%d", 1+i))
		h := &node{Host: realhost.New(t, ns), number: i, name: fmt.Sprintf("esx%d", i), guests: map[string]*cable.End{}}
		r.wire(ns, "eno2", "data", fmt.Sprintf("d%d", i))
		for k, g := range guests {
			h.guests[g.device] = r.guest(h, g.device, guestMAC(i, k))
		}
		for k, device := range places {
			r.guest(h, device, guestMAC(i, len(guests)+k))
		}
		r.hosts = append(r.hosts, h)
	}
	for i := range nomads {
		r.nomads = append(r.nomads, r.newNomad(i))
	}
	return r
}

func guestMAC(host, guest int) [6]byte { return [6]byte{2, 0, 0, 0, byte(guest), byte(host)} }

// machine is a namespace with an address in the management network. Its cable there is called by kind and number.
func (r *rig) machine(name, kind string, number int, address string) *netns.NS {
	r.t.Helper()
	ns := testkit.NS(r.t, name)
	r.wire(ns, "mgmt0", "mgmt", fmt.Sprintf("%s%d", kind, number))
	r.inside(ns, func() error {
		l, err := netlink.LinkByName("mgmt0")
		if err != nil {
			return err
		}
		a, err := netlink.ParseAddr(address + "/24")
		if err != nil {
			return err
		}
		return netlink.AddrAdd(l, a)
	})
	return ns
}

// wire makes a cable between a device of a machine and a bridge.
func (r *rig) wire(ns *netns.NS, device, bridge, port string) {
	r.t.Helper()
	r.cable(ns, device, r.network, port)
	r.inside(r.network, func() error {
		l, err := netlink.LinkByName(port)
		if err != nil {
			return err
		}
		m, err := netlink.LinkByName(bridge)
		if err != nil {
			return err
		}
		return netlink.LinkSetMaster(l, m)
	})
}

// cable makes a veth pair between two namespaces, up at both ends.
func (r *rig) cable(ns *netns.NS, device string, far *netns.NS, farDevice string) {
	r.t.Helper()
	handle, err := far.Handle()
	if err != nil {
		r.t.Fatal(err)
	}
	defer handle.Close()
	r.inside(ns, func() error {
		return errors.Join(netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: device},
			PeerName: farDevice, PeerNamespace: netlink.NsFd(int(handle))}), up(device))
	})
	r.inside(far, func() error { return up(farDevice) })
}

// guest is a guest with an adapter whose end at the host is that device.
func (r *rig) guest(h *node, device string, mac [6]byte) *cable.End {
	r.t.Helper()
	ns := testkit.NS(r.t, device)
	r.cable(h.NS, device, ns, "eth0")
	r.inside(ns, func() error {
		l, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		return netlink.LinkSetHardwareAddr(l, mac[:])
	})
	return cable.Open(r.t, ns, "eth0")
}

func (r *rig) inside(ns *netns.NS, f func() error) {
	r.t.Helper()
	if err := ns.Do(f); err != nil {
		r.t.Fatal(err)
	}
}

func up(name string) error {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(l)
}

// plugged unplugs cables of the management network, or plugs them in again.
func (r *rig) plugged(in bool, ports ...string) {
	r.t.Helper()
	r.inside(r.network, func() error {
		for _, port := range ports {
			l, err := netlink.LinkByName(port)
			if err != nil {
				return err
			}
			set := netlink.LinkSetDown
			if in {
				set = netlink.LinkSetUp
			}
			if err := set(l); err != nil {
				return err
			}
		}
		return nil
	})
}

// begin starts all that runs, and has the guests connected and the first definition active.
func (r *rig) begin() DefinitionCall {
	r.t.Helper()
	if len(r.members) > 0 {
		flags := r.secure()
		for _, c := range r.controllers {
			c.Args = flags
		}
	}
	for _, m := range r.members {
		m.start(r.t)
	}
	first := r.controllers[0]
	first.Start()
	for _, c := range r.controllers[1:] {
		if len(r.members) == 0 {
			c.Joins(first)
			continue
		}
		c.Must(append([]string{"join", first.Address, "--token", strings.TrimSpace(first.Must("token"))},
			c.Args...)...)
		c.Start()
	}
	for _, h := range r.hosts {
		h.Start("switches: []\n")
		first.Join(h.Host, h.name, map[string]string{"rack": "a"})
	}
	if out := first.Define(definition); len(out.Hosts) != len(r.hosts) || len(out.Waiting) > 0 {
		r.t.Fatalf("the first definition: %+v", out)
	}
	for _, h := range r.hosts {
		for i, g := range guests {
			mac := guestMAC(h.number, i)
			q := api.Connect{VM: "", Adapter: ""}
			q.Name, q.Switch, q.PortGroup, q.Device = g.device, "dvs", g.group, g.device
			q.MAC = fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5])
			if _, err := h.Connect(r.t.Context(), q); err != nil {
				r.t.Fatal(err)
			}
			h.Await(g.device+" is up", func() bool { return h.portOf(g.device).State == api.Up })
		}
	}
	for _, n := range r.nomads {
		n.starts()
	}
	d, err := first.Definition(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	text, err := canonical(d.Content)
	if err != nil {
		r.t.Fatal(err)
	}
	return DefinitionCall{Revision: d.Revision, Text: text}
}

// portOf is a port of the host as its agent shows it; one without a name where there is none, or no agent.
func (h *node) portOf(name string) api.Port {
	s, err := h.State(h.T.Context())
	if err != nil {
		return api.Port{}
	}
	for _, p := range s.Ports {
		if p.Name == name {
			return p
		}
	}
	return api.Port{}
}

// failed counts what a call failed with.
func (r *rig) failed(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.problems[kindOf(err)]++
}

// kindOf is an error without what differs from call to call.
func kindOf(err error) string {
	text := err.Error()
	for _, c := range "0123456789" {
		text = strings.ReplaceAll(text, string(c), "")
	}
	return text[:min(len(text), 160)]
}

// number is a random one, from 0 to below n.
func (r *rig) number(n int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.random.IntN(n)
}

// keep writes the logs of all processes into a directory that stays.
func (r *rig) keep(seed uint64) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("heddle-chaos-%d", seed))
	logs := map[string]string{}
	for _, c := range r.controllers {
		logs[c.Name] = c.Log()
	}
	for _, h := range r.hosts {
		logs[h.name] = h.Log()
	}
	for _, m := range r.members {
		logs[m.name] = m.log.String()
	}
	history, err := json.MarshalIndent(r.history.Calls(), "", " ")
	err = errors.Join(err, os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "history.json"), history, 0o600))
	for name, text := range logs {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name+".log"), []byte(text), 0o600))
	}
	if err != nil {
		r.t.Errorf("keep the logs: %v", err)
	}
	r.t.Logf("the logs of seed %d are in %s; HEDDLE_SEED=%d makes the same faults again", seed, dir, seed)
}
