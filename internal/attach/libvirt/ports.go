package libvirt

import (
	"fmt"
	"slices"
	"strings"

	"heddle/internal/api"
	"heddle/internal/plan/problem"
	"heddle/internal/spec"
)

// owner is the first part of the names of a domain's ports: its name, or its UUID if the name can't begin a port's
// name. A domain's name has no slash, so ports of different domains never have the same name.
func (d *Domain) owner() string {
	if len(d.Name) <= maxOwner && spec.ValidName(d.Name+"/net0") {
		return d.Name
	}
	return d.UUID
}

// maxOwner is the longest domain name used, in bytes; it leaves space for an alias.
const maxOwner = 40

// isOwn reports whether a port is one of this domain's adapters.
func (d *Domain) isOwn(p api.Port) bool {
	if p.VM != "" {
		return strings.EqualFold(p.VM, d.UUID)
	}
	gone := d.Ours() && p.ReasonCode == problem.DeviceMissing // it was unplugged
	return d.Owns(p.Name) && (gone || d.Has(p.Device))
}

// guest is the owner of the domain's ports: containers and guests of other kinds may have its name.
func (d *Domain) guest() string { return "libvirt/" + d.owner() }

// Owns says whether a port's name is that of a port of this domain. Others may have such names: see isOwn.
func (d *Domain) Owns(port string) bool { return strings.HasPrefix(port, d.owner()+"/") }

// Has says whether one of the domain's adapters has that device.
func (d *Domain) Has(device string) bool {
	for _, i := range d.Interfaces {
		if device != "" && i.Device == device {
			return true
		}
	}
	return false
}

// Bridged says whether libvirt has put the adapter with that device into a bridge.
func (d *Domain) Bridged(device string) bool {
	return slices.ContainsFunc(d.Interfaces, func(i Interface) bool { return i.Device == device && i.Network != "" })
}

// want finds the port that an adapter gets: metadata that names the adapter has priority over its network's portgroup,
// and that over metadata for all adapters.
func (d *Domain) want(i Interface) *Want {
	var all *Want
	for k := range d.Wants {
		w := &d.Wants[k]
		if w.names(i) {
			return w
		}
		if w.selector() == "" && i.Type == "ethernet" {
			all = w
		}
	}
	if sw, ok := i.onSwitch(); ok {
		return &Want{PortGroup: i.PortGroup, Switch: sw}
	}
	return all
}

// wants are all requests of the domain.
func (d *Domain) wants() []Want {
	all := slices.Clone(d.Wants)
	for _, i := range d.Interfaces {
		if w := d.want(i); w != nil && !slices.Contains(all, *w) {
			all = append(all, *w)
		}
	}
	return all
}

// Check returns what is wrong with the domain's requests, compared with its adapters. It does not need what libvirt
// adds at the start; so an adapter may be missing that is named by a device or an alias which libvirt sets only then.
func (d *Domain) Check() error {
	for _, w := range d.Wants {
		if err := d.checkWant(w); err != nil {
			return err
		}
	}
	for _, i := range d.Interfaces {
		if w := d.want(i); w != nil && w.PortGroup == "" {
			return fmt.Errorf("the adapter %s is on network %s without portgroup=: say which port group it belongs to",
				i.MAC, i.Network)
		}
	}
	return nil
}

func (d *Domain) checkWant(w Want) error {
	found := false
	for _, i := range d.Interfaces {
		if !w.names(i) && !(w.selector() == "" && i.Type == "ethernet") {
			continue
		}
		found = true
		if _, ok := i.onSwitch(); i.Type != "ethernet" && !ok {
			return fmt.Errorf("the adapter with %s is an <interface type='%s'>: Heddle takes type='ethernet', whose "+
				"tap libvirt puts into no bridge, "+
				"and type='network' on a network called heddle-SWITCH", w.selector(), i.Type)
		}
	}
	switch {
	case found:
	case w.selector() == "":
		return fmt.Errorf("port group %s has no adapter: there is no <interface type='ethernet'>", w.PortGroup)
	case w.MAC != "":
		return fmt.Errorf("no <interface> of the domain has %s", w.selector())
	}
	return nil
}

// Ports are the ports of the started domain.
func (d *Domain) Ports() ([]spec.Port, error) {
	if err := d.Check(); err != nil {
		return nil, err
	}
	var ports []spec.Port
	used := map[*Want]bool{}
	for _, i := range d.Interfaces {
		w := d.want(i)
		if w == nil {
			continue
		}
		used[w] = true
		if i.Device == "" || i.Alias == "" {
			return nil, fmt.Errorf("the adapter %s has no <target dev> or no <alias>: this is not the XML of a "+
				"running domain", i.MAC)
		}
		p := spec.Port{Name: d.owner() + "/" + i.Alias, Switch: w.Switch, PortGroup: w.PortGroup, Device: i.Device,
			MAC: i.MAC, Owner: d.guest()}
		if spec.ValidUUID(d.UUID) {
			p.Domain = d.UUID // libvirt calls no hook when the guest moves
		}
		if w.Monitor != "" {
			p.Monitor = spec.Monitor{Socket: w.Monitor, NIC: i.Alias}
		}
		ports = append(ports, p)
	}
	for k := range d.Wants {
		if w := &d.Wants[k]; !used[w] && w.selector() != "" {
			return nil, fmt.Errorf("no <interface> of the domain has %s", w.selector())
		}
	}
	return ports, nil
}

// adapterName is the name of an adapter within its domain, which it keeps over restarts and migrations: the alias that
// the domain's definition gives it, else its MAC. Other aliases are by the order of the adapters.
func (i Interface) adapterName() string {
	if strings.HasPrefix(i.Alias, "ua-") || i.MAC == "" {
		return i.Alias
	}
	return i.MAC
}

// Connects are the requests by which the domain's ports are connected: each says whose port it is.
func (d *Domain) Connects() ([]api.Connect, error) {
	ports, err := d.Ports()
	if err != nil {
		return nil, err
	}
	list := make([]api.Connect, len(ports))
	for k, p := range ports {
		list[k] = api.Connect{Port: p}
		for _, i := range d.Interfaces {
			if i.Device != p.Device || !spec.ValidUUID(d.UUID) {
				continue
			}
			list[k].VM, list[k].Adapter = d.UUID, i.adapterName()
			if w := d.want(i); w != nil {
				list[k].PortID = w.PortID
			}
		}
	}
	return list, nil
}
