package segments

import (
	"time"

	"heddle/internal/overlay"
	"heddle/internal/overlay/span"
)

// bound is which MAC of another host has an address; false for nobody, and for one of this host itself. The caller
// holds the lock.
func (k *Keeper) bound(a overlay.Address, self string, now time.Time) (overlay.Binding, bool) {
	content := k.known.Content(span.VNI(a.VNI))
	if content == nil {
		return overlay.Binding{}, false
	}
	at, ok := content.Places[span.AddressKey(a.IP).In(a.VLAN)]
	if !ok || at.Host == self || at.Owner.IsZero() {
		return overlay.Binding{}, false
	}
	return overlay.Binding{Address: a, MAC: at.Owner, Age: max(now.Sub(time.UnixMilli(at.Since)), 0)}, true
}

// takeBound adds what has changed of who has which address. The caller holds the lock.
func (k *Keeper) takeBound(c *Change, self string) {
	now := time.Now()
	for a := range k.addresses {
		if b, ok := k.bound(a, self, now); ok {
			c.Bound = append(c.Bound, b)
		} else {
			c.Unbound = append(c.Unbound, a)
		}
	}
}

// allBound adds all that is known of who has which address. The caller holds the lock.
func (k *Keeper) allBound(c *Change, vni span.VNI, self string) {
	now := time.Now()
	for key := range k.known.Content(vni).Places {
		ip, is := key.Address()
		if !is {
			continue
		}
		if b, ok := k.bound(overlay.Address{VNI: uint32(vni), VLAN: key.VLAN(), IP: ip}, self, now); ok {
			c.Bound = append(c.Bound, b)
		}
	}
}
