package doctor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"

	"heddle/internal/api"
	"heddle/internal/dataplane"
	"heddle/internal/host/hostdev"
)

// devices lists the namespace's devices, and examines only those that a switch uses, so that a thousand guests take no
// time.
func (f *Facts) devices(w Where) {
	links, err := netlink.LinkList()
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		f.Unknown[FactDevices] = fmt.Sprintf("list the devices: %v", err)
		return
	}
	byIndex := map[int]netlink.Link{}
	for _, l := range links {
		byIndex[l.Attrs().Index] = l
	}
	f.tcx()
	for _, l := range links {
		f.Devices[l.Attrs().Name] = deviceOf(l, byIndex)
	}
	for _, l := range links {
		upon(f.Devices, l, byIndex)
	}
	used := map[string]bool{}
	for _, u := range inUse(*f) {
		used[u.Name] = true
	}
	closer := newCloser(f.pinsOf(w))
	defer closer.close()
	for name, d := range f.Devices {
		if used[name] {
			f.Devices[name] = closer.look(d, byIndex[d.Index])
		}
	}
}

func (f *Facts) pinsOf(w Where) string {
	if slices.Contains(f.Pins.Agents, w.Agent) {
		return filepath.Join(w.RunDir, "bpf", w.Agent)
	}
	return ""
}

// tcx queries the programs of the loopback device, which a kernel without tcx refuses.
func (f *Facts) tcx() {
	if os.Geteuid() != 0 { // the answer would be "not supported"
		f.Unknown[FactTCX] = "run this as root"
		return
	}
	_, err := link.QueryPrograms(link.QueryOptions{Target: 1, Attach: ebpf.AttachTCXIngress})
	switch {
	case errors.Is(err, os.ErrPermission):
		f.Unknown[FactTCX] = "run this as root"
	case err == nil:
		f.Kernel.TCX = true
	case errors.Is(err, ebpf.ErrNotSupported):
	default:
		f.Unknown[FactTCX] = err.Error()
	}
}

func deviceOf(l netlink.Link, byIndex map[int]netlink.Link) Device {
	a := l.Attrs()
	d := Device{Name: a.Name, Driver: l.Type(), Index: a.Index, MTU: a.MTU, Promiscuous: a.Promisc > 0,
		Up: a.RawFlags&upAndLower == upAndLower}
	if d.Driver == "device" {
		d.Driver = ""
	}
	if m, ok := byIndex[a.MasterIndex]; ok && a.MasterIndex != 0 {
		d.Master, d.MasterKind = m.Attrs().Name, m.Type()
	}
	d.StrictReversePath = read("/proc/sys/net/ipv4/conf/"+a.Name+"/rp_filter") == "1" ||
		read("/proc/sys/net/ipv4/conf/all/rp_filter") == "1"
	addresses, err := netlink.AddrList(l, netlink.FAMILY_ALL)
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return d // gone in the meantime
	}
	for _, a := range addresses {
		if !a.IP.IsLinkLocalUnicast() {
			d.Addresses = append(d.Addresses, a.IPNet.String())
		}
	}
	return d
}

// upAndLower are IFF_UP and IFF_LOWER_UP.
const upAndLower = 1 | 1<<16

// upon records a VLAN, macvlan or ipvlan device at the device below it.
func upon(devices map[string]Device, l netlink.Link, byIndex map[int]netlink.Link) {
	switch l.Type() {
	case "vlan", "macvlan", "macvtap", "ipvlan", "ipvtap":
	default:
		return
	}
	parent, ok := byIndex[l.Attrs().ParentIndex]
	if !ok || l.Attrs().NetNsID >= 0 { // in another namespace
		return
	}
	d := devices[parent.Attrs().Name]
	d.Upper = append(d.Upper, l.Attrs().Name)
	devices[d.Name] = d
}

// closer reads details of single devices, and skips what it cannot open.
type closer struct {
	// pins is the directory of the agent's kernel objects, "" if it cannot be read: then only the agent knows which
	// programs are its own.
	pins string
	host *hostdev.Host
	tool *ethtool.Ethtool
}

func newCloser(pins string) *closer {
	c := &closer{pins: pins}
	if h, err := hostdev.Open(); err == nil {
		c.host = h
	}
	if e, err := ethtool.NewEthtool(); err == nil {
		c.tool = e
	}
	return c
}

func (c *closer) close() {
	if c.host != nil {
		c.host.Close()
	}
	if c.tool != nil {
		c.tool.Close()
	}
}

func (c *closer) look(d Device, l netlink.Link) Device {
	if c.host != nil {
		if h, ok, err := c.host.Device(d.Name); err == nil && ok && h.Peer.Seen {
			d.PeerMTU = h.Peer.MTU
		}
	}
	if c.tool != nil {
		if features, err := c.tool.Features(d.Name); err == nil {
			d.Features = features
		}
	}
	xdp := 0
	if x := l.Attrs().Xdp; x != nil && x.Attached {
		xdp = int(x.ProgId)
	}
	c.chain(&d, xdp)
	d.Behind = append(d.Behind, tcFilters(l)...)
	if firstNamespace() {
		d.Manager = managerOf(d.Index)
	}
	return d
}

// chain finds the programs on a device. It recognises the switch's own by its attachment; every other is somebody
// else's, whatever its name.
func (c *closer) chain(d *Device, xdp int) {
	if xdp != 0 {
		d.Before = append(d.Before, api.ProgramBefore{Device: d.Name, Hook: api.HookXDP, Program: uint32(xdp)})
	}
	if c.pins == "" {
		return
	}
	found, err := dataplane.PinnedChain(c.pins, uint32(d.Index))
	if err != nil {
		return
	}
	d.Detached = !found.Ours
	for _, s := range found.Strangers {
		p := api.ProgramBefore{Device: d.Name, Hook: string(s.Hook), Name: s.Name, Program: s.Program, Link: s.Link,
			Agent: s.Instance}
		switch {
		case s.Before:
			d.Before = append(d.Before, p)
		case s.Instance != "" || strings.HasPrefix(s.Name, "heddle_"):
			d.Former = append(d.Former, p)
		default:
			d.Behind = append(d.Behind, fmt.Sprintf("tcx %s", p.What()))
		}
	}
}

func tcFilters(l netlink.Link) []string {
	filters, err := netlink.FilterList(l, netlink.HANDLE_MIN_INGRESS)
	if err != nil {
		return nil
	}
	var names []string
	for _, f := range filters {
		name := "tc filter " + f.Type()
		if b, ok := f.(*netlink.BpfFilter); ok {
			name += " " + b.Name
		}
		names = append(names, name)
	}
	return names
}

// firstNamespace reports whether this thread is in the network namespace of the machine's first process, whose devices
// the network managers number; true if that cannot be determined.
func firstNamespace() bool {
	first, err := os.Readlink("/proc/1/ns/net")
	here, errHere := os.Readlink("/proc/thread-self/ns/net")
	return err != nil || errHere != nil || first == here
}

// managerOf returns the network manager that configures the device, by the state files that both managers keep for each
// device.
func managerOf(index int) string {
	if s := read(fmt.Sprintf("/run/NetworkManager/devices/%d", index)); strings.Contains(s, "managed=true") ||
		strings.Contains(s, "managed=1") {
		return "NetworkManager"
	}
	if s := read(fmt.Sprintf("/run/systemd/netif/links/%d", index)); strings.Contains(s, "NETWORK_FILE=") &&
		!strings.Contains(s, "ADMIN_STATE=unmanaged") {
		return "systemd-networkd"
	}
	return ""
}
