package spec

import (
	"slices"
	"testing"
)

// The rule is written once, at the field: what reads it follows.
func TestLevelRule(t *testing.T) {
	for path, want := range map[string]bool{"security.addressGuard.addresses": true,
		"security.addressGuard.enabled": false, "security.addressGuard": false, "vlan": false, "nope": false} {
		if got := PortOnly(path); got != want {
			t.Errorf("%s is set at ports alone: %v", path, got)
		}
	}
	on, list := true, []string{"192.0.2.1"}
	var categories []string
	for c := range (Policy{}).categoriesSet() {
		categories = append(categories, c)
	}
	slices.Sort(categories)
	if all := Categories(); !slices.Equal(categories, slices.Sorted(slices.Values(all))) {
		t.Errorf("a policy has the parts %v, and permissions are for %v", categories, all)
	}
	own := Policy{Security: Security{AddressGuard: AddressGuard{Addresses: &list}}}
	if own.categoriesSet()["security"] || own.Security.AddressGuard.Addresses != &list {
		t.Error("a port's own addresses need a permission, or are lost")
	}
	own.Security.AddressGuard.Enabled = &on
	if set := own.categoriesSet(); !set["security"] || set["vlan"] || set["blocked"] {
		t.Errorf("%v", set)
	}
}
