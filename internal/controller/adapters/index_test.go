package adapters

import (
	"testing"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/part"
)

// A VM runs where its port has a device and waits for nobody; a change alone tells that as a whole report does.
func TestAnAdapterRunsWhereItsPortHasADevice(t *testing.T) {
	for name, c := range map[string]struct {
		port *controllerv1.HostPort
		runs bool
	}{
		"with a device":    {&controllerv1.HostPort{State: "up"}, true},
		"its link is down": {&controllerv1.HostPort{State: "down"}, true},
		"without a device": {&controllerv1.HostPort{State: "pending", Absent: true}, false},
		"it will arrive":   {&controllerv1.HostPort{State: "waiting", Waits: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			c.port.Switch, c.port.Name, c.port.Vm, c.port.Adapter = "dvs", "p", "vm", "net0"
			n := part.AdapterOf("vm", "net0")
			for how, take := range map[string]func(index, *host, []*controllerv1.HostPort){
				"report": func(x index, h *host, p []*controllerv1.HostPort) { x.reported(h, p) },
				"change": func(x index, h *host, p []*controllerv1.HostPort) { x.amended(h, p, nil) },
			} {
				s, h := newIndex(), &host{id: "h", conn: &part.Conn{}}
				other := &controllerv1.HostPort{Switch: "dvs", Name: "p", Vm: "vm", Adapter: "net0", State: "up"}
				if c.runs {
					other = &controllerv1.HostPort{Switch: "dvs", Name: "p", Vm: "vm", Adapter: "net0", Absent: true}
				}
				for round, ports := range [][]*controllerv1.HostPort{{other}, {c.port}} {
					take(s, h, ports)
					want := c.runs == (round == 1)
					if got := len(s.on(n)) == 1; got != want {
						t.Errorf("%s %d: it runs there: %v, want %v", how, round, got, want)
					}
				}
			}
		})
	}
}
