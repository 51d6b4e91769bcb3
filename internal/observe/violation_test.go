package observe

import (
	"strings"
	"testing"

	"heddle/internal/plan"
)

func TestEveryViolationHasATextOfItsOwn(t *testing.T) {
	mac := func(b byte) plan.MAC { return plan.MAC{2, 0, 0, 0, 0, b} }
	for _, c := range []struct {
		v    Violation
		want string
	}{
		{Violation{}, ""},
		{Violation{Code: GroupAddress, Uses: plan.MAC{1, 0, 0x5e, 0, 0, 1}},
			"the adapter uses the group address 01:00:5e:00:00:01"},
		{Violation{Code: AddressInUse, Uses: mac(1), Whose: "web", Has: mac(2)},
			"the adapter uses 02:00:00:00:00:01, the MAC of port web"},
		{Violation{Code: AddressInUse, Uses: mac(1), Whose: "u1", Uplink: true},
			"the adapter uses 02:00:00:00:00:01, the MAC of uplink u1"},
		{Violation{Code: AddressChanged, Uses: mac(1), Has: mac(2)},
			"the adapter uses 02:00:00:00:00:01 instead of 02:00:00:00:00:02, and the policy rejects MAC changes"},
		{Violation{Code: "of-a-newer-agent"}, "of-a-newer-agent"},
	} {
		if got := c.v.Text(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.v, got, c.want)
		}
	}
	shared := Violation{Code: AddressInUse, Uses: mac(1), Whose: "vm/1", Owner: "vm"}
	if text := shared.Text(); !strings.Contains(text, "which is vm's too: it may where the policies of both ports "+
		"accept") {
		t.Error(text)
	}
}
