package backup

import (
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"heddle/internal/spec"
	"heddle/internal/spec/printable"
)

// mostText bounds what names a VM, an adapter or a host, in bytes.
const mostText = 255

// mostPort is the highest number that a static port can have here: ports of 2^36 chunks.
const mostPort = 1 << 41

// identifier is what an object's identifier looks like.
var identifier = regexp.MustCompile(`^[a-z0-9-]{1,64}$`)

// checker finds what is wrong with a file.
type checker struct {
	groups map[string]*spec.PortGroup
	ports  map[string]string // number → port group
	nics   map[[2]string]string
}

// check says the first that is wrong with what is not the definition.
func (f *File) check() error {
	c := checker{groups: map[string]*spec.PortGroup{}, ports: map[string]string{}, nics: map[[2]string]string{}}
	switches := map[string]bool{}
	for i := range f.Definition.Switches {
		sw := &f.Definition.Switches[i]
		switches[sw.Name] = true
		for k := range sw.PortGroups {
			c.groups[sw.Name+"/"+sw.PortGroups[k].Name] = &sw.PortGroups[k]
		}
	}
	if f.Switch != "" && (len(switches) != 1 || !switches[f.Switch]) {
		return fmt.Errorf("it says that it is of switch %s, and its definition has others", shown(f.Switch))
	}
	seen := map[string]bool{}
	for kind, names := range f.Identifiers {
		for name, id := range names {
			if !identifier.MatchString(id) || seen[id] {
				return fmt.Errorf("the identifier %s of %s %s is none, or another object has it too", shown(id),
					shown(string(kind)), shown(name))
			}
			seen[id] = true
		}
	}
	if err := f.checkHosts(); err != nil {
		return err
	}
	for _, g := range f.StaticPorts {
		if err := c.group(&g); err != nil {
			return err
		}
	}
	for _, p := range f.Definition.Ports {
		if c.ports[p.ID] != p.Switch+"/"+p.PortGroup {
			return fmt.Errorf("the definition has settings of static port %s, which is no port of %s here", p.ID,
				shown(p.Switch+"/"+p.PortGroup))
		}
	}
	return nil
}

func (f *File) checkHosts() error {
	names, addresses := map[string]bool{}, map[netip.Addr]string{}
	for _, h := range f.Hosts {
		if !spec.ValidName(h.Name) || names[h.Name] || !validText(h.ID) {
			return fmt.Errorf("hosts: %s is no host's name, or there twice", shown(h.Name))
		}
		names[h.Name] = true
	}
	for host, list := range f.Addresses {
		for _, a := range list {
			addr, err := netip.ParseAddr(a.Address)
			other, twice := addresses[addr]
			if err != nil || twice || !spec.ValidName(host) || !spec.ValidName(a.Port) || !spec.ValidName(a.Switch) {
				return fmt.Errorf("addresses: %s of host %s is none, or host %s has it too", shown(a.Address),
					shown(host), shown(other))
			}
			addresses[addr] = host
		}
	}
	return nil
}

// group checks the static ports of a port group.
func (c *checker) group(g *PortGroup) error {
	known := c.groups[g.Group]
	if known == nil || !known.HasStaticPorts() {
		return fmt.Errorf("staticPorts: the definition has no port group %s with static ports", shown(g.Group))
	}
	for _, id := range g.Free {
		if err := c.number(id, g.Group); err != nil {
			return err
		}
	}
	for _, p := range g.Bound {
		if err := c.number(p.ID, g.Group); err != nil {
			return err
		}
		if !validText(p.VM) || !validText(p.Adapter) || len(p.Host) > mostText || len(p.HostID) > mostText {
			return fmt.Errorf("staticPorts: port %s: a VM and its adapter are needed, each of at most %d bytes", p.ID,
				mostText)
		}
		if p.MAC != "" && !spec.ValidMAC(p.MAC) {
			return fmt.Errorf("staticPorts: port %s: %s is no MAC of an adapter", p.ID, shown(p.MAC))
		}
		nic := [2]string{p.VM, p.Adapter}
		if other, twice := c.nics[nic]; twice {
			return fmt.Errorf("staticPorts: ports %s and %s are of one adapter", other, p.ID)
		}
		c.nics[nic] = p.ID
	}
	return nil
}

func (c *checker) number(id, group string) error {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil || n < 0 || n > mostPort || strconv.FormatInt(n, 10) != id {
		return fmt.Errorf("staticPorts: %s is no number of a static port", shown(id))
	}
	if other, twice := c.ports[id]; twice {
		return fmt.Errorf("staticPorts: port %s is in %s and in %s", id, shown(other), shown(group))
	}
	c.ports[id] = group
	return nil
}

func validText(s string) bool {
	return s != "" && len(s) <= mostText && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' })
}

func shown(s string) string { return strconv.Quote(printable.Short(s, 80)) }
