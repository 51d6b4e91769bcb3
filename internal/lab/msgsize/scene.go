package msgsize

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/safchain/ethtool"

	"heddle/internal/lab"
	"heddle/internal/lab/netns"
	"heddle/internal/lab/scenario"
	"heddle/internal/lab/traffic"
)

// The host, and the devices of guests.
const (
	host     = "esx1"
	guestNIC = "eth0"
	inside   = "inside" // the firewall's arms
	outside  = "outside"
)

// role is a guest's part in a set.
type role string

// A client sends to near directly and to far through the firewall.
const (
	client role = "client"
	near   role = "near"
	far    role = "far"
	filter role = "fw"
)

// node is the name of a guest in the lab.
func (g guests) node(r role) string { return fmt.Sprintf("%s-%s-%d", r, g.offloadsKey(), g.mtu) }

// The addresses of the n-th set: two networks of those set aside for measurements (RFC 2544).
func insideAddress(n, of int) string  { return fmt.Sprintf("198.18.%d.%d", n, of) }
func outsideAddress(n, of int) string { return fmt.Sprintf("198.19.%d.%d", n, of) }

// The last bytes of the addresses.
const (
	clientHost, nearHost, farHost, gatewayHost = 1, 2, 1, 254
)

// labText is the lab: one host, one switch, and for every kind of guests two port groups with a VLAN each, three VMs,
// and a firewall with an adapter in both.
func labText(sets []guests) string {
	var groups, ports, vms, routers strings.Builder
	for n, g := range sets {
		fmt.Fprintf(&groups, "            - {name: inside-%d, vlan: {access: %d}}\n            - {name: outside-%d, "+
			"vlan: {access: %d}}\n", n, 100+n, n, 200+n)
		for _, p := range []struct{ name, group string }{
			{g.node(client), inside}, {g.node(near), inside}, {g.node(far), outside}, {g.node(filter) + "-in", inside},
			{g.node(filter) + "-out", outside},
		} {
			fmt.Fprintf(&ports, "        - {name: %s, switch: lab, portGroup: %s-%d, device: %s}\n", p.name, p.group, n,
				portDevice(n, p.name))
		}
		vm := "  - {name: %s, host: esx1, addresses: [%s/24], gateway: %s, mtu: %d}\n"
		fmt.Fprintf(&vms, vm, g.node(client), insideAddress(n, clientHost), insideAddress(n, gatewayHost), g.mtu)
		fmt.Fprintf(&vms, vm, g.node(near), insideAddress(n, nearHost), insideAddress(n, gatewayHost), g.mtu)
		fmt.Fprintf(&vms, vm, g.node(far), outsideAddress(n, farHost), outsideAddress(n, gatewayHost), g.mtu)
		fmt.Fprintf(&routers, "  - name: %s\n    interfaces:\n", g.node(filter))
		arm := "      - {device: %s, host: esx1, port: %s, addresses: [%s/24], mtu: %d}\n"
		fmt.Fprintf(&routers, arm, inside, g.node(filter)+"-in", insideAddress(n, gatewayHost), g.mtu)
		fmt.Fprintf(&routers, arm, outside, g.node(filter)+"-out", outsideAddress(n, gatewayHost), g.mtu)
	}
	return "name: " + Name + "\nhosts:\n  - name: esx1\n    config:\n      switches:\n        - name: lab\n          " +
		"kind: distributed\n" +
		"          mtu: 9000\n          portGroups:\n" + groups.String() + "      ports:\n" + ports.String() +
		"vms:\n" + vms.String() + "routers:\n" + routers.String()
}

// portDevice is the name of the host's end of a port's adapter: "v0-client", at most 15 characters.
func portDevice(set int, port string) string {
	short := strings.NewReplacer("-off", "", "-on", "", "-1500", "", "-9000", "").Replace(port)
	return fmt.Sprintf("v%d-%s", set, short)
}

// rig is the lab that is up.
type rig struct {
	effort
	lab   *lab.Lab
	ends  traffic.Processes
	index map[guests]int
}

// build brings the lab up, with the wanted offloads and firewalls.
func build(ctx context.Context, o Options, e effort) (_ *rig, err error) {
	if _, err := exec.LookPath("nft"); err != nil {
		return nil, fmt.Errorf("%s filters with nft in its virtual firewall, and there is none here: install the "+
			"package nftables", Name)
	}
	if o.Program == "" {
		if o.Program, err = os.Executable(); err != nil {
			return nil, fmt.Errorf("find the heddle program: %w", err)
		}
	}
	s, err := scenario.Parse(Name+".yaml", []byte(labText(e.sets())), nil)
	if err != nil {
		return nil, err
	}
	l, err := lab.Build(ctx, s, lab.Options{Name: fmt.Sprintf("size%d", os.Getpid()), RunDir: o.RunDir,
		Program: o.Program, Progress: o.Progress})
	if err != nil {
		return nil, err
	}
	r := &rig{effort: e, lab: l, ends: traffic.Processes{Program: []string{o.Program, "traffic"}},
		index: map[guests]int{}}
	for n, g := range e.sets() {
		r.index[g] = n
		if err := r.furnish(g); err != nil {
			return nil, errors.Join(err, l.Down())
		}
	}
	return r, nil
}

// furnish loads the firewall's rules, and turns offloads off if the set requires it.
func (r *rig) furnish(g guests) error {
	fw, err := r.lab.NS(g.node(filter))
	if err != nil {
		return err
	}
	if err := loadRules(fw); err != nil {
		return err
	}
	if g.offloads {
		return nil
	}
	for _, x := range []struct {
		role    role
		devices []string
	}{{client, []string{guestNIC}}, {near, []string{guestNIC}}, {far, []string{guestNIC}},
		{filter, []string{inside, outside}}} {
		ns, err := r.lab.NS(g.node(x.role))
		if err != nil {
			return err
		}
		for _, device := range x.devices {
			if err := ns.Do(func() error { return withoutOffloads(device) }); err != nil {
				return fmt.Errorf("%s: %w", g.node(x.role), err)
			}
		}
	}
	return nil
}

// offloads are what an adapter does for its guest, by the kernel's names: checksums, cutting and joining segments.
func offloads() []string {
	return []string{
		"rx-checksum", "tx-checksum-ip-generic", "tx-checksum-ipv4", "tx-scatter-gather", "tx-scatter-gather-fraglist",
		"tx-tcp-segmentation", "tx-tcp-ecn-segmentation", "tx-tcp-mangleid-segmentation", "tx-tcp6-segmentation",
		"tx-tcp-accecn-segmentation",
		"tx-generic-segmentation", "rx-gro",
	}
}

// withoutOffloads turns off every offload of the device, and checks that they are off.
func withoutOffloads(device string) error {
	tool, err := ethtool.NewEthtool()
	if err != nil {
		return fmt.Errorf("open a socket for device settings: %w", err)
	}
	defer tool.Close()
	state, err := tool.FeaturesWithState(device)
	if err != nil {
		return fmt.Errorf("read the offloads of %s: %w", device, err)
	}
	off := map[string]bool{}
	for _, name := range offloads() {
		if s, known := state[name]; known && s.Active {
			off[name] = false
		}
	}
	if err := tool.Change(device, off); err != nil {
		return fmt.Errorf("turn off the offloads of %s: %w", device, err)
	}
	after, err := tool.Features(device)
	if err != nil {
		return fmt.Errorf("read the offloads of %s: %w", device, err)
	}
	for _, name := range offloads() {
		if after[name] {
			return fmt.Errorf("%s of %s stays on: this measures nothing", name, device)
		}
	}
	return nil
}

// namespace is that of a guest of a set.
func (r *rig) namespace(g guests, of role) (*netns.NS, error) { return r.lab.NS(g.node(of)) }
