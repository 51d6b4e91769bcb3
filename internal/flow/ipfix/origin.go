package ipfix

import (
	"net/netip"
	"slices"
)

// origin is an observation domain of an exporter over UDP, which several sessions can share. Some exporters send
// templates from one port and records from another, which are two sessions according to RFC 7011.
type origin struct {
	exporter netip.Addr
	domain   uint32
}

func (k domainKey) origin() origin {
	return origin{k.session.Exporter.Addr(), k.id}
}

// siblings limits in how many sessions of an exporter a template is looked for: those that sent one last.
const siblings = 8

// announce notes that the domain's session sent a template.
func (d *Decoder) announce(it *domain) {
	if it.key.session.Protocol != UDP {
		return
	}
	o := it.key.origin()
	list := d.origins[o]
	if len(list) > 0 && list[0] == it {
		return
	}
	list = slices.DeleteFunc(list, func(other *domain) bool { return other == it })
	d.origins[o] = slices.Insert(list, 0, it)[:min(len(list)+1, siblings)]
}

// silence notes that the domain was dropped.
func (d *Decoder) silence(it *domain) {
	o := it.key.origin()
	list := slices.DeleteFunc(d.origins[o], func(other *domain) bool { return other == it })
	if len(list) == 0 {
		delete(d.origins, o)
		return
	}
	d.origins[o] = list
}

// borrow finds the template for the set between two offsets in the exporter's other sessions. It finds none if they do
// not agree, if the records do not fit, or if a template of the session was refused, because a wrong template makes
// wrong records.
func (m *reading) borrow(set uint16, at, end int) *storedTemplate {
	if m.domain.refused || m.domain.key.session.Protocol != UDP {
		return nil
	}
	var found *storedTemplate
	for _, other := range m.origins[m.domain.key.origin()] {
		t := other.templates[set]
		switch {
		case t == nil || m.at.Sub(t.at) > m.limits.Lifetime:
		case found == nil:
			found = t
		case !found.same(t.Template):
			return nil
		}
	}
	if found == nil || !m.fits(found.Template, at, end) {
		return nil
	}
	return found
}

// mostPadding is how many bytes exporters add after the records of a set, so that the next one begins at a round
// offset.
const mostPadding = 7

// fits reports whether whole records fill the set, except for padding of zeros.
func (m *reading) fits(t *Template, at, end int) bool {
	for end-at >= t.length {
		n := t.length
		if t.variable {
			var err error
			if n, m.places, err = t.measure(m.message[at:end], m.places[:0]); err != nil {
				return false
			}
		}
		at += n
	}
	return end-at <= mostPadding && !slices.ContainsFunc(m.message[at:end], func(b byte) bool { return b != 0 })
}
