package agent

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"heddle/internal/observe/event"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
)

// What an agent made and somebody renamed has its name again, with an event. Where the name is taken, or the kernel
// refuses it, the problem names both, until it can have it.
func TestS197_AHostPortThatSomebodyRenamesHasItsNameAgain(t *testing.T) {
	const refused = "name mine vmk0"
	for _, name := range []string{"vmk0", "sw-vmk0"} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, withVMK)
			index := r.dev.byName[name].Index
			before := r.events.Last()
			r.dev.rename(name, "mine")
			r.settler.settle()
			if d := r.dev.byName[name]; d == nil || d.Index != index || len(r.since(before, event.Restored)) != 1 {
				t.Fatalf("%+v after %v, told %+v", d, r.dev.changes, r.since(before, event.Restored))
			}
			if why := r.Active().Problems[id("vmk0")]; !why.None() {
				t.Errorf("%+v", why)
			}
			r.dev.rename(name, "mine")
			other := r.dev.nic(name, 1500)
			r.settler.settle()
			why := r.Active().Problems[id("vmk0")]
			if why.Code != problem.DeviceRenamed || why.Device != name || why.Peer != "mine" {
				t.Errorf("the name is taken: %+v", why)
			}
			if _, served := r.Active().Applied.Attachments[id("vmk0")]; !served {
				t.Error("the port does not serve")
			}
			r.dev.rename(name, "other")
			r.settler.settle()
			if d := r.dev.byName[name]; d == nil || d.Index != index || other.Name != "other" ||
				!r.Active().Problems[id("vmk0")].None() {
				t.Errorf("the name is free: %+v, %+v", d, r.Active().Problems)
			}
		})
	}
	r := newRig(t, withVMK)
	r.dev.fail[refused] = errors.New("device busy")
	r.dev.rename("vmk0", "mine")
	r.settler.settle()
	if why := r.Active().Problems[id("vmk0")]; why.Code != problem.DeviceRenamed || why.Detail == "" {
		t.Errorf("the kernel refuses: %+v", why)
	}
}

// An end of a host port in another network namespace is a problem of the port: with the host's end there it serves who
// is there; the switch's end can't.
func TestS197_AnEndOfAHostPortElsewhereIsAProblem(t *testing.T) {
	r := newRig(t, withVMK)
	r.dev.byName["sw-vmk0"].Peer.Elsewhere = true
	delete(r.dev.byName, "vmk0")
	r.settler.settle()
	if why := r.Active().Problems[id("vmk0")]; why.Code != problem.DeviceMoved || why.Device != "vmk0" {
		t.Errorf("the host's end: %+v", why)
	}
	r = newRig(t, withVMK)
	r.dev.byName["vmk0"].Peer.Elsewhere = true
	delete(r.dev.byName, "sw-vmk0")
	r.settler.settle()
	if why := r.Active().Problems[id("vmk0")]; why.Code != problem.HostInterface ||
		!strings.Contains(why.Detail, "move it back") {
		t.Errorf("the switch's end: %+v", why)
	}
}

// A tunnel's device has its name again, also where the kernel renames none that is up; no second one is made.
func TestS197_ATunnelThatSomebodyRenamesHasItsNameAgain(t *testing.T) {
	const file = "switches:\n  - {name: lab, portGroups: [{name: web}], tunnel: {endpoints: [{address: 192.0.2.1}]}}\n"
	for how, fails := range map[string]bool{"as it is": false, "set down before": true} {
		t.Run(how, func(t *testing.T) {
			r := newRig(t, file)
			tun := r.Active().Plan.Switch("lab").Tunnel
			index := r.dev.byName[tun.Device].Index
			r.dev.rename(tun.Device, "mine")
			r.dev.before = func(what string) {
				if what == "up mine false" {
					delete(r.dev.fail, "name mine "+tun.Device)
				}
			}
			if fails {
				r.dev.fail["name mine "+tun.Device] = unix.EBUSY
			}
			r.dev.changes = nil
			r.settler.settle()
			d := r.dev.byName[tun.Device]
			if d == nil || d.Index != index || !d.AdminUp || r.dev.byName["mine"] != nil {
				t.Errorf("%+v after %v", d, r.dev.changes)
			}
			if slices.ContainsFunc(r.dev.changes, func(s string) bool { return strings.HasPrefix(s, "create") }) {
				t.Errorf("a second one was made: %v", r.dev.changes)
			}
			if a := r.Active().Applied.Attachments[plan.PortID{Switch: "lab", Name: tun.ID.Name}]; a.Ifindex != index {
				t.Errorf("attached: %+v", a)
			}
		})
	}
}
