package segments

import (
	"heddle/internal/overlay"
	"heddle/internal/overlay/span"
)

// placed is what controllers locate: a MAC of a VNI.
type placed struct {
	vni span.VNI
	key span.Key
}

// KeyOf is the key by which controllers are told of a MAC that is in one VLAN inside a VNI, or in none in particular.
func KeyOf(k overlay.Key) span.Key {
	vlan, _ := k.Inside.VLAN()
	return span.MACKey(k.MAC).In(vlan)
}

// movedToOlder reports whether a host that knows no VLANs inside a VNI says of a MAC that it has learned it, later than
// this host has learned it in a tagged VLAN: it may have moved there. If it has not, it is heard here again, and
// claimed anew.
func movedToOlder(content *span.Content, key span.Key, self string) bool {
	at, ok := content.Places[key.In(0)]
	own, has := content.Places[key]
	return ok && at.Host != self && !at.Untagged && at.Source == span.Learned && has && own.Host == self &&
		at.Order > own.Order
}

// withInside adds to what was touched the MACs in tagged VLANs of which something was touched in none in particular:
// what is said of the one bears on the other.
func (k *Keeper) withInside() {
	var more []placed
	for at := range k.places {
		content := k.known.Content(at.vni)
		if content == nil || at.key.VLAN() != 0 {
			continue
		}
		mac, _ := at.key.MAC()
		for _, vlan := range content.Inside(mac) {
			more = append(more, placed{at.vni, at.key.In(vlan)})
		}
	}
	for _, at := range more {
		k.places[at] = true
	}
}

// locate adds to a change where a MAC is: behind which endpoint, or nowhere, as on this host itself. The caller holds
// the lock.
func (k *Keeper) locate(c *Change, at placed, self string) {
	mac, _ := at.key.MAC()
	all := overlay.Key{VNI: uint32(at.vni), MAC: mac}
	one := all
	one.Inside = overlay.In(at.key.VLAN())
	endpoint, in := k.endpointOf(at, self)
	if at.key.VLAN() != 0 {
		c.note(one, endpoint, in)
		return
	}
	untagged := in && k.known.Content(at.vni).Places[at.key].Untagged
	c.note(one, endpoint, untagged)
	c.note(all, endpoint, in && !untagged)
}

// note adds where a MAC is, if it is somewhere.
func (c *Change) note(key overlay.Key, e span.Endpoint, is bool) {
	if !is {
		c.Removed = append(c.Removed, key)
		return
	}
	c.Put = append(c.Put, overlay.Location{Key: key, Endpoint: e.Address, Source: overlay.Announced})
}

// endpointOf is the endpoint of the host that has a MAC; false for none, and for this host itself. In a tagged VLAN,
// nobody takes over the own MAC of a trunk port by sending from it: then what is said of all VLANs holds.
func (k *Keeper) endpointOf(at placed, self string) (e span.Endpoint, ok bool) {
	content := k.known.Content(at.vni)
	if content == nil {
		return e, false
	}
	l, ok := content.Places[at.key]
	if !ok || l.Host == self {
		return e, false
	}
	trunk, is := content.Places[at.key.In(0)]
	if at.key.VLAN() != 0 && is && !trunk.Untagged && trunk.Source == span.Port && l.Source != span.Port {
		return e, false
	}
	host := content.Members[l.Host]
	return host.EndpointFor(at.key)
}
