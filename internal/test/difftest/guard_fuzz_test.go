package difftest

import (
	"encoding/binary"
	"os"
	"slices"
	"testing"

	"heddle/internal/model"
	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/test/guardcases"
)

// guardedHost has a port for each guard, and one that hears all.
const guardedHost = `
switches:
- name: s
  defaults: {vlan: {trunk: ["0-4094"]}}
  portGroups:
  - {name: addresses, security: {addressGuard: {enabled: true}}}
  - {name: clients, security: {dhcpServer: reject, routerAdvertisements: reject}}
  - {name: all, security: {addressGuard: {enabled: true}, dhcpServer: reject, routerAdvertisements: reject}}
  - {name: servers, security: {dhcpServer: reject}}
  - {name: plain}
ports:
- {name: p0, switch: s, portGroup: addresses, device: d0, mac: "02:00:00:00:00:01"}
- {name: p1, switch: s, portGroup: clients, device: d1, mac: "02:00:00:00:00:02"}
- {name: p2, switch: s, portGroup: all, device: d2, mac: "02:00:00:00:00:03"}
- {name: p3, switch: s, portGroup: servers, device: d3, mac: "02:00:00:00:00:04"}
- {name: hears, switch: s, portGroup: plain, device: d4, mac: "02:00:00:00:00:05"}
`

// guardedPlan is guardedHost with the addresses of the cases at each of its guarded ports, everything up.
func guardedPlan(tb testing.TB) (*plan.Plan, plan.Facts) {
	tb.Helper()
	cfg, err := spec.Parse("guarded.yaml", []byte(guardedHost))
	if err != nil {
		tb.Fatal(err)
	}
	for i := range cfg.Ports {
		cfg.Ports[i].Security.AddressGuard.Addresses = &guardcases.Addresses
	}
	p, err := plan.Resolve(cfg, nil)
	if err != nil {
		tb.Fatal(err)
	}
	facts := plan.Facts{}
	for _, port := range p.Switches[0].Ports {
		facts[port.ID] = plan.Fact{Up: true, MTU: 1500, SeenMAC: port.InitialMAC}
	}
	return p, facts
}

// FuzzGuard gives any type and payload to the guards: every frame has one fate, and where root is there the kernel
// program gives it the one that the model does.
func FuzzGuard(f *testing.F) {
	for _, c := range slices.Concat(guardcases.Sources(), guardcases.Neighbours(), guardcases.Servers()) {
		for guard := range byte(4) {
			f.Add(guard, c.Frame[12:])
		}
	}
	p, facts := guardedPlan(f)
	h, kernel := model.New(p, facts, 0), Subject(nil)
	if os.Geteuid() == 0 {
		k, err := NewKernel()
		if err != nil {
			f.Fatal(err)
		}
		f.Cleanup(func() { _ = k.Close() })
		if err := k.SetPlan(p, facts, 0); err != nil {
			f.Fatal(err)
		}
		kernel = k
	}
	f.Fuzz(func(t *testing.T, guard byte, payload []byte) {
		port := p.Switches[0].Ports[guard%4]
		if len(payload) < 2 || len(payload) > 1500 {
			return
		}
		frame := slices.Concat([]byte{255, 255, 255, 255, 255, 255}, port.InitialMAC[:], payload)
		if binary.BigEndian.Uint16(payload) == 0x88b5 {
			return // probes of loops, which are another's
		}
		frame = runnable(frame)
		r := h.Frame(port.ID, frame, 0)
		oneDisposition(t, r)
		want := Outcome{Delivered: r.Delivered, Reason: r.Reason, Copies: r.Copies, Refused: r.Refused}
		if kernel == nil {
			return
		}
		got, err := kernel.Frame(port.ID, frame, 0)
		if err != nil {
			t.Fatal(err)
		}
		if what := differ(want, got); what != "" {
			t.Fatalf("port %s, frame %x: %s", port.ID, frame, what)
		}
	})
}
