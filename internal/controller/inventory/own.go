package inventory

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"

	"heddle/internal/slice"
	"heddle/internal/spec"
)

// Granted is an address that a host port has from a pool. It stays the host's as long as the host is part of the
// cluster, has that port on that switch, and the port draws from a pool with that address.
type Granted struct {
	Port    string     `json:"port"`
	Switch  string     `json:"switch"`
	Address netip.Addr `json:"address"`
}

// HostPorts are the host ports that a host has, by name: of templates that give it ports of the same name the last by
// name counts, and the host's own entry stands above them. It has those whose switch it has, and whose port group its
// labels let it serve.
func (v *Inventory) HostPorts(host string, joined map[string]string) []spec.HostPort {
	if !v.hostPorts {
		return nil
	}
	own, has := v.hosts[host]
	if has {
		return v.hostPortsOf(host, joined, own.HostPorts)
	}
	key := fingerprint(joined)
	v.mu.Lock()
	list, ok := v.ports[key]
	v.mu.Unlock()
	if !ok {
		list = v.hostPortsOf(host, joined, nil)
		v.mu.Lock()
		v.ports[key] = list
		v.mu.Unlock()
	}
	return list
}

func (v *Inventory) hostPortsOf(host string, joined map[string]string, own []spec.HostPort) []spec.HostPort {
	labels, switches := v.Labels(host, joined), v.Switches(host, joined)
	all := map[string]spec.HostPort{}
	for i := range v.templates {
		if t := &v.templates[i]; t.Fits(labels) {
			for _, p := range t.HostPorts {
				all[p.Name] = p
			}
		}
	}
	for _, p := range own {
		all[p.Name] = p
	}
	barred := v.barred(switches, labels)
	maps.DeleteFunc(all, func(_ string, p spec.HostPort) bool {
		_, has := switches[p.Switch]
		return !has || barred[p.Switch+"/"+p.PortGroup]
	})
	return slices.SortedFunc(maps.Values(all), func(a, b spec.HostPort) int { return strings.Compare(a.Name, b.Name) })
}

// Own is what of a slice is the host's alone: its host ports, with the addresses that it has from pools, and the
// settings of the static ports that are bound there. without are host ports that have not got an address yet and are
// left out, each with the pool.
func (v *Inventory) Own(host Member, granted []Granted, bound map[string]string) (own *slice.Set, without []string,
	err error) {
	own = &slice.Set{}
	for _, p := range v.HostPorts(host.Name, host.Labels) {
		pooled, missing := addresses(&p, granted)
		if missing != "" {
			without = append(without, fmt.Sprintf("host port %s is not there: it has no address from pool %s yet",
				p.Name,
				missing))
			continue
		}
		if p.MAC == "" {
			p.MAC = derivedMAC(host.ID, &p)
		}
		doc, err := json.Marshal(p.Port(pooled...))
		if err != nil {
			return nil, nil, err
		}
		own.Put(slice.Object{Key: slice.Key{Kind: slice.Port, Name: p.Name}, Doc: doc})
	}
	if len(v.settings) == 0 {
		return own, without, nil
	}
	for id, group := range bound {
		if _, ok := v.SettingsOf(id, group); ok {
			own.Put(v.settings[id])
		}
	}
	return own, without, nil
}

// derivedMAC is the MAC of a host port for which none is defined: the same at any time, and another one on each host,
// also on those that were installed from one image.
func derivedMAC(id string, p *spec.HostPort) string {
	h := sha256.Sum256([]byte("heddle host port\x00" + id + "\x00" + p.Switch + "\x00" + p.Name))
	mac := net.HardwareAddr(h[:6])
	mac[0] = mac[0]&^1 | 2 // locally administered, and no group
	return mac.String()
}

// HasSettings reports whether the definition sets something for single static ports.
func (v *Inventory) HasSettings() bool { return len(v.settings) > 0 }

// HasPools reports whether some host port may draw from a pool.
func (v *Inventory) HasPools() bool { return v.hostPorts }

// Settings are the settings of static ports, by their numbers.
func (v *Inventory) Settings() (map[string]spec.PortSettings, error) {
	return v.objects.Settings()
}

// SettingsOf are the settings of one static port of a port group SWITCH/GROUP, if there are any.
func (v *Inventory) SettingsOf(id, group string) (p spec.PortSettings, ok bool) {
	o, ok := v.settings[id]
	if !ok || json.Unmarshal(o.Doc, &p) != nil {
		return p, false
	}
	return p, p.Switch+"/"+p.PortGroup == group
}

// addresses are those that a host port has from its pools, one from each; missing is the first pool without one.
func addresses(p *spec.HostPort, granted []Granted) (list []string, missing string) {
	for _, text := range p.Pools {
		pool, err := spec.ParsePool(text)
		i := slices.IndexFunc(granted, func(g Granted) bool { return g.of(p) && pool.Contains(g.Address) })
		if err != nil || i < 0 {
			return nil, text
		}
		list = append(list, pool.Prefix(granted[i].Address))
	}
	return list, ""
}

func (g Granted) of(p *spec.HostPort) bool { return g.Port == p.Name && g.Switch == p.Switch }

// Member is a host of the cluster.
type Member struct {
	ID, Name string
	Labels   map[string]string // with which it joined
}

// Exhausted says that a pool has no address left for a host port.
type Exhausted struct {
	Pool, Switch, Host, Port string
}

func (e *Exhausted) Error() string {
	return fmt.Sprintf("pool %s has no free address for host port %s of host %s: make it larger, or remove hosts that "+
		"are no more", e.Pool, e.Port, e.Host)
}

// Grant gives the host ports of these hosts the addresses that they lack, and takes back those that none of their ports
// needs. have is what hosts have, also others. The result has the hosts whose addresses are others than before; nil is
// for none. full says for which ports there is no address. What a host's ports draw by a
// definition of also stays, too.
func (v *Inventory) Grant(hosts []Member, have map[string][]Granted, also ...*Inventory) (changed map[string][]Granted,
	full []*Exhausted) {
	hosts = slices.SortedFunc(slices.Values(hosts), func(a, b Member) int { return cmp.Compare(a.Name, b.Name) })
	taken, keep := map[netip.Addr]bool{}, map[string][]Granted{}
	changed = map[string][]Granted{}
	about := map[string]bool{}
	for _, h := range hosts {
		about[h.Name] = true
		keep[h.Name] = kept(h, have[h.Name], append(also[:len(also):len(also)], v))
		for _, g := range keep[h.Name] {
			taken[g.Address] = true
		}
	}
	for name, list := range have {
		if about[name] {
			continue
		}
		for _, g := range list {
			taken[g.Address] = true
		}
	}
	first := map[spec.Pool]netip.Addr{} // below are none that are free
	for _, h := range hosts {
		now := keep[h.Name]
		for _, p := range v.HostPorts(h.Name, h.Labels) {
			for _, text := range p.Pools {
				pool, err := spec.ParsePool(text)
				if err != nil || slices.ContainsFunc(now, func(g Granted) bool {
					return g.of(&p) && pool.Contains(g.Address)
				}) {
					continue
				}
				left := pool
				if a, ok := first[pool]; ok {
					left.First = a
				}
				a, ok := left.Free(func(a netip.Addr) bool { return taken[a] })
				if !ok {
					full = append(full, &Exhausted{text, p.Switch, h.Name, p.Name})
					continue
				}
				taken[a], first[pool] = true, a
				now = append(now, Granted{p.Name, p.Switch, a})
			}
		}
		if !slices.Equal(now, have[h.Name]) {
			changed[h.Name] = now
		}
	}
	return changed, full
}

// kept are the addresses of a host that its ports still draw by some of these definitions.
func kept(h Member, have []Granted, by []*Inventory) (list []Granted) {
	var ports []spec.HostPort
	for _, v := range by {
		ports = append(ports, v.HostPorts(h.Name, h.Labels)...)
	}
	for _, g := range have {
		for _, p := range ports {
			if g.of(&p) && slices.ContainsFunc(p.Pools, func(text string) bool {
				pool, err := spec.ParsePool(text)
				return err == nil && pool.Contains(g.Address)
			}) {
				list = append(list, g)
				break
			}
		}
	}
	return list
}
