package memory

import (
	"testing"

	"heddle/internal/plan"
)

func TestLAGState_NumbersAndKeys(t *testing.T) {
	mac := func(n byte) LAGDevice { return LAGDevice{uint32(n), plan.MAC{2, 0, 0, 0, 0, n}} }
	uplink := func(name string) plan.PortID { return plan.PortID{Switch: "s", Name: name} }
	devices := map[plan.PortID]LAGDevice{uplink("b"): mac(2), uplink("c"): mac(3)}
	p := func(members ...string) *plan.Plan {
		return &plan.Plan{Switches: []*plan.Switch{{Name: "s", LAGs: []*plan.LAG{{Name: "one", Uplinks: members},
			{Name: "two", Uplinks: []string{"z"}}}}}}
	}
	var st Memory
	keep := func(members ...string) *LAG {
		st.KeepLAGs(p(members...), devices)
		st.ForgetLAGs(p(members...))
		return st.LAG(uplink("one"))
	}
	numbers := func(l *LAG) map[string]uint16 {
		m := map[string]uint16{}
		for _, s := range l.Snapshot.Members {
			m[s.Name] = s.Port.Number
		}
		return m
	}
	l := keep("a", "b", "c")
	if got := numbers(l); len(got) != 3 || got["a"] != 1 || got["b"] != 2 || got["c"] != 3 {
		t.Errorf("numbers %v", got)
	}
	if l.Snapshot.System.MAC != mac(2).MAC || l.Snapshot.Key == 0 ||
		l.Snapshot.Key == st.LAG(uplink("two")).Snapshot.Key {
		t.Errorf("system %s key %d; the other LAG's %d", l.Snapshot.System, l.Snapshot.Key,
			st.LAG(uplink("two")).Snapshot.Key)
	}
	delete(devices, uplink("b")) // the card that gave the system id goes
	l = keep("b", "c", "d")
	if got := numbers(l); len(got) != 3 || got["b"] != 2 || got["c"] != 3 || got["d"] != 4 {
		t.Errorf("numbers after a change %v", got)
	}
	if l.Snapshot.System.MAC != mac(2).MAC {
		t.Errorf("the system id changed to %s", l.Snapshot.System)
	}
	if got := numbers(keep("c", "e")); got["c"] != 3 || got["e"] != 1 {
		t.Errorf("a number that is free again: %v", got)
	}
}
