package hostnet

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// ruleHeader is the size of struct fib_rule_hdr; its flags are at ruleFlags.
const (
	ruleHeader = 12
	ruleFlags  = 8
	ruleInvert = 0x2 // FIB_RULE_INVERT: "not"; the other flags are what the kernel found out
)

// readRules reads the policy rules that name the device. They have its name and not its index, so they outlive the
// device.
func readRules(c *Config, name string) error {
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		all, err := dump(unix.RTM_GETRULE, familyOnly(family), unix.RTM_NEWRULE)
		if err != nil {
			return fmt.Errorf("read the policy rules: %w", err)
		}
		for _, b := range all {
			if names(b, unix.FRA_IIFNAME, name) || names(b, unix.FRA_OIFNAME, name) {
				c.Rules = append(c.Rules, Object{b, ruleText(b)})
			}
		}
	}
	return nil
}

func names(b []byte, kind uint16, name string) bool {
	return strings.TrimRight(string(attribute(b, ruleHeader, kind)), "\x00") == name
}

func ruleText(b []byte) string {
	text := "policy rule"
	if p := attribute(b, ruleHeader, unix.FRA_PRIORITY); len(p) == 4 {
		text += fmt.Sprintf(" %d", binary.NativeEndian.Uint32(p))
	}
	for kind, word := range map[uint16]string{unix.FRA_IIFNAME: " iif ", unix.FRA_OIFNAME: " oif "} {
		if v := attribute(b, ruleHeader, kind); v != nil {
			text += word + strings.TrimRight(string(v), "\x00")
		}
	}
	return text
}

// ruleFor returns the rule with another device in place of from.
func ruleFor(b []byte, from, name string) []byte {
	out := slices.Clone(b[:ruleHeader])
	binary.NativeEndian.PutUint32(out[ruleFlags:], binary.NativeEndian.Uint32(b[ruleFlags:])&ruleInvert)
	return each(out, b[ruleHeader:], func(kind uint16, v []byte) []byte {
		if (kind == unix.FRA_IIFNAME || kind == unix.FRA_OIFNAME) && strings.TrimRight(string(v), "\x00") == from {
			return append([]byte(name), 0)
		}
		return v
	})
}

// familyOnly requests everything of one address family.
type familyOnly uint8

func (familyOnly) Len() int { return ruleHeader }
func (f familyOnly) Serialize() []byte {
	return append([]byte{uint8(f)}, make([]byte, ruleHeader-1)...)
}
