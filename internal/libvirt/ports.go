package libvirt

import (
	"fmt"
	"strings"

	"heddle/internal/spec"
)

// owner is the first part of the names of a domain's ports: its name, or its UUID where a port may not be called so. A domain's
// name has no slash, so that no domain's ports are another's.
func (d *Domain) owner() string {
	if len(d.Name) <= maxOwner && spec.ValidName(d.Name+"/net0") {
		return d.Name
	}
	return d.UUID
}

// maxOwner leaves room for an alias behind a domain's name, in bytes.
const maxOwner = 40

// Owns says whether a port is named as one of this domain.
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

// want finds what an adapter's port is to be: what names the adapter goes before what is for all.
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
	return all
}

// Check says what is wrong with the metadata against the domain's adapters. It needs none of what libvirt adds at start, so an
// adapter named by a device or an alias that libvirt gives only then may be missing.
func (d *Domain) Check() error {
	for _, w := range d.Wants {
		found := false
		for _, i := range d.Interfaces {
			if !w.names(i) && !(w.selector() == "" && i.Type == "ethernet") {
				continue
			}
			found = true
			if i.Type != "ethernet" {
				return fmt.Errorf("the adapter with %s is an <interface type='%s'>: Heddle takes type='ethernet', whose tap libvirt puts into no bridge", w.selector(), i.Type)
			}
		}
		switch {
		case found:
		case w.selector() == "":
			return fmt.Errorf("port group %s has no adapter: there is no <interface type='ethernet'>", w.PortGroup)
		case w.MAC != "":
			return fmt.Errorf("no <interface> of the domain has %s", w.selector())
		}
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
			return nil, fmt.Errorf("the adapter %s has no <target dev> or no <alias>: this is not the XML of a running domain", i.MAC)
		}
		p := spec.Port{Name: d.owner() + "/" + i.Alias, Switch: w.Switch, PortGroup: w.PortGroup, Device: i.Device, MAC: i.MAC}
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
