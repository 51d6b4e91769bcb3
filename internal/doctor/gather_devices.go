package doctor

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"

	"heddle/internal/hostdev"
)

// devices looks at the namespace's devices; closely only at those that a switch uses, so that a thousand guests take no time.
func (f *Facts) devices() {
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
	closer := newCloser()
	defer closer.close()
	for name, d := range f.Devices {
		if used[name] {
			f.Devices[name] = closer.look(d, byIndex[d.Index])
		}
	}
}

// tcx asks for the programs of the loopback device, which a kernel without tcx refuses.
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
	d := Device{Name: a.Name, Driver: l.Type(), Index: a.Index, MTU: a.MTU, Promiscuous: a.Promisc > 0, Up: a.RawFlags&upAndLower == upAndLower}
	if d.Driver == "device" {
		d.Driver = ""
	}
	if m, ok := byIndex[a.MasterIndex]; ok && a.MasterIndex != 0 {
		d.Master, d.MasterKind = m.Attrs().Name, m.Type()
	}
	if a.Xdp != nil {
		d.XDP = a.Xdp.Attached
	}
	d.StrictReversePath = read("/proc/sys/net/ipv4/conf/"+a.Name+"/rp_filter") == "1" || read("/proc/sys/net/ipv4/conf/all/rp_filter") == "1"
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

// upon notes a VLAN, macvlan or ipvlan device at the device that it takes its frames from.
func upon(devices map[string]Device, l netlink.Link, byIndex map[int]netlink.Link) {
	switch l.Type() {
	case "vlan", "macvlan", "macvtap", "ipvlan", "ipvtap":
	default:
		return
	}
	parent, ok := byIndex[l.Attrs().ParentIndex]
	if !ok || l.Attrs().NetNsID >= 0 { // of another namespace
		return
	}
	d := devices[parent.Attrs().Name]
	d.Upper = append(d.Upper, l.Attrs().Name)
	devices[d.Name] = d
}

// closer looks at single devices. What it cannot open, it does without.
type closer struct {
	host *hostdev.Host
	tool *ethtool.Ethtool
}

func newCloser() *closer {
	c := &closer{}
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
	d.Others = append(tcxPrograms(d.Index), tcFilters(l)...)
	d.Manager = managerOf(d.Index)
	return d
}

// tcxPrograms are the names of those that are not the switch's.
func tcxPrograms(index int) []string {
	q, err := link.QueryPrograms(link.QueryOptions{Target: index, Attach: ebpf.AttachTCXIngress})
	if err != nil {
		return nil
	}
	var names []string
	for _, at := range q.Programs {
		p, err := ebpf.NewProgramFromID(at.ID)
		if err != nil {
			continue
		}
		if info, err := p.Info(); err == nil && !isOurs(info.Name) {
			names = append(names, fmt.Sprintf("tcx %s (%d)", info.Name, at.ID))
		}
		p.Close()
	}
	return names
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

// managerOf is the network manager that says it configures the device, by the state files that both keep for each device.
func managerOf(index int) string {
	if s := read(fmt.Sprintf("/run/NetworkManager/devices/%d", index)); strings.Contains(s, "managed=true") || strings.Contains(s, "managed=1") {
		return "NetworkManager"
	}
	if s := read(fmt.Sprintf("/run/systemd/netif/links/%d", index)); strings.Contains(s, "NETWORK_FILE=") && !strings.Contains(s, "ADMIN_STATE=unmanaged") {
		return "systemd-networkd"
	}
	return ""
}
