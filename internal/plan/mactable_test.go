package plan

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"heddle/internal/spec"
)

func learners(limits ...int) *Plan {
	sw := &Switch{Name: "lab"}
	for _, n := range limits {
		p := &Port{Policy: &Effective{}}
		p.Policy.Learning.Enabled.V, p.Policy.Learning.Limit.V = n >= 0, max(n, 0)
		sw.Ports = append(sw.Ports, p)
	}
	return &Plan{Switches: []*Switch{sw}}
}

func TestTheTableIsSharedOnlyWhereLimitsExceedIt(t *testing.T) {
	p := learners(4096, 4096, -1)
	p.SetMACTable(8192)
	for _, port := range p.Switches[0].Ports[:2] {
		if port.MACShare != 0 || port.MACRoom() != 4096 {
			t.Errorf("share %d, room %d", port.MACShare, port.MACRoom())
		}
	}
	if w := p.Warnings(); len(w) > 0 {
		t.Errorf("warned of %q", w)
	}
	p = learners(100, 4096, 4096)
	p.SetMACTable(4096)
	rooms := []int{p.Switches[0].Ports[0].MACRoom(), p.Switches[0].Ports[1].MACRoom(), p.Switches[0].Ports[2].MACRoom()}
	if rooms[0] != 100 || rooms[1] != 1998 || rooms[2] != 1998 {
		t.Errorf("rooms %v", rooms)
	}
	w := p.Warnings()
	if len(w) != 1 || !strings.Contains(w[0], "add up to 8292") || !strings.Contains(w[0], "2 ports get") ||
		!strings.Contains(w[0], "macTable: 12288") {
		t.Errorf("warnings %q", w)
	}
}

// No port gets more than its limit, no port below its limit gets less than an equal share, and all quotas together fit.
func TestSharesFitAndAreFair(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		limits := rapid.SliceOfN(rapid.IntRange(0, spec.MaxMACs), 1, 60).Draw(rt, "limits")
		size := rapid.IntRange(len(limits), 3*spec.MaxMACs).Draw(rt, "size")
		p := learners(limits...)
		p.SetMACTable(size)
		sum, learning, least, most := 0, 0, 1<<30, 0
		for i, port := range p.Switches[0].Ports {
			room := port.MACRoom()
			sum += room
			if limits[i] > 0 {
				learning++
			}
			if room > limits[i] {
				rt.Fatalf("port %d has room %d above its limit %d", i, room, limits[i])
			}
			if port.MACShare > 0 {
				least, most = min(least, room), max(most, room)
			}
		}
		if sum > size {
			rt.Fatalf("%d MACs of a table for %d", sum, size)
		}
		if most > 0 && (least < size/learning || most > least+1) {
			rt.Fatalf("shares %d to %d of %d for %d ports", least, most, size, learning)
		}
	})
}
