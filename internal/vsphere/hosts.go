package vsphere

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"heddle/internal/spec"
)

// labelBegin begins the label that hosts share which have a switch by the same cards; the switch's name ends it.
const labelBegin = "uplinks/"

// placement says which host has which switches, by which cards.
type placement struct {
	inv      *Inventory
	options  Options
	result   *Result
	switches []*translated
}

// placed is a host on its way.
type placed struct {
	about
	id, name string
	from     *object // nil where the dump does not have the host
	switches []spec.HostSwitch
	ports    []spec.HostPort
	devices  map[string]bool
}

// all makes one template for all hosts that have a switch by the same cards, and an entry for each host with the labels
// of its templates.
func (p *placement) all() {
	known, count := map[string]string{}, map[string]int{}
	for _, h := range p.hosts() {
		entry := spec.HostEntry{Name: h.name, Labels: map[string]string{}, HostPorts: h.ports}
		for _, s := range h.switches {
			label, key := plain(labelBegin+s.Name, false), fmt.Sprintf("%q", s)
			n, ok := known[key]
			if !ok {
				count[s.Name]++
				n = fmt.Sprint(count[s.Name])
				known[key] = n
				p.result.Definition.Templates = append(p.result.Definition.Templates, spec.HostTemplate{
					Name:   plain(label+"/"+n, false),
					Labels: map[string]string{label: n}, Switches: []spec.HostSwitch{s}})
			}
			entry.Labels[label] = n
		}
		p.result.Definition.Hosts = append(p.result.Definition.Hosts, entry)
		p.result.Hosts++
		p.result.HostPorts += len(h.ports)
	}
}

// hosts are those of all switches, by name.
func (p *placement) hosts() []*placed {
	byID := map[any]*placed{} // by the object of the host, by the reference of one that the dump does not have
	for _, s := range p.switches {
		for i := range s.from.Config.Host {
			m := &s.from.Config.Host[i]
			if m.Config.Host == nil {
				continue
			}
			var key any = m.Config.Host.Value
			o := p.inv.hostOf(s.from, *m.Config.Host)
			if o != nil {
				key = o
			}
			if byID[key] == nil {
				byID[key] = p.host(m.Config.Host.Value, o)
			}
			p.join(byID[key], s, m)
		}
	}
	called := newNames(false)
	all := slices.SortedFunc(maps.Values(byID), func(a, b *placed) int {
		return strings.Compare(a.name+"\x00"+a.id, b.name+"\x00"+b.id)
	})
	for _, h := range all {
		from := h.name
		if h.name = called.fresh(from); h.name != from {
			h.note(Renamed, "name", from, "the host has to join by the name "+h.name)
		}
		p.adapters(h)
	}
	return all
}

func (p *placement) host(id string, o *object) *placed {
	h := &placed{id: id, name: id, from: o, devices: map[string]bool{}}
	if o != nil {
		h.name = o.named()
	}
	h.about = p.result.on("host", h.name)
	if o == nil {
		h.changed("name", id, "the name of this host is not in the dump: write it into hosts instead of "+id)
	}
	return h
}

// join gives a host one of its switches.
func (p *placement) join(h *placed, s *translated, m *member) {
	if slices.ContainsFunc(h.switches, func(has spec.HostSwitch) bool { return has.Name == s.to.Name }) {
		return
	}
	to := spec.HostSwitch{Name: s.to.Name}
	for _, card := range m.Config.Backing.PnicSpec {
		name, known := p.inv.ports[portKey(s.from.Config.UUID, card.UplinkPortKey)]
		uplink, has := s.uplinks.given[name]
		if !known || !has || s.isLAG(uplink) {
			h.absent("uplink of "+card.PnicDevice, card.UplinkPortKey, "the dump does not say which uplink of switch "+
				s.to.Name+" this is: add the uplink ports to the dump, or the uplink to the template")
			continue
		}
		p.card(h, &to, uplink, card.PnicDevice)
	}
	slices.SortFunc(to.Uplinks, func(a, b spec.HostUplink) int { return strings.Compare(a.Name, b.Name) })
	h.switches = append(h.switches, to)
}

func (p *placement) card(h *placed, to *spec.HostSwitch, uplink, card string) {
	device, ok := p.options.Devices[card]
	if !ok {
		device = strings.Map(func(r rune) rune {
			if r > ' ' && r < 0x7f && r != '/' && r != ':' {
				return r
			}
			return '-'
		}, card)
		device = device[:min(len(device), 15)]
		h.changed("network card", card, "its name is another on Linux (ip -br link): import with --device "+card+
			"=NAME, or edit the template")
	}
	taken := slices.ContainsFunc(to.Uplinks, func(u spec.HostUplink) bool { return u.Name == uplink })
	if device == "" || device == "lo" || strings.Trim(device, ".") == "" || h.devices[device] || taken {
		h.absent("network card", card, "it serves no uplink: another card, or another uplink, has its place")
		return
	}
	h.devices[device] = true
	to.Uplinks = append(to.Uplinks, spec.HostUplink{Name: uplink, Device: device})
}
