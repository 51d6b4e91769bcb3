package agent

import (
	"context"
	"slices"
	"strings"
	"testing"

	"heddle/internal/agent/state"
	"heddle/internal/api"
	"heddle/internal/host/hostdev"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/spec"
	"heddle/internal/uplinks"
)

const anotherVM = "7f9619ff-8b86-d011-b42d-00c04fc96499"

// ofVM is the request by which a hook connects an adapter of a VM.
func ofVM(vm, device string) api.Connect {
	return api.Connect{VM: vm, Adapter: "net0", Port: spec.Port{Name: "vm1/net0", PortGroup: "web", Device: device,
		MAC: "52:54:00:00:00:01", Domain: vm}}
}

func (r *rig) hook(q api.Connect) error {
	return r.command(func(ctx context.Context) error { _, err := r.commands.Reconnect(ctx, q); return err })
}

// rebooted ends the agent and all devices; what the state file has stays.
func (r *rig) rebooted() {
	r.t.Helper()
	st := r.saved()
	st.MoveTo("an earlier boot")
	store, err := state.Open(r.dir)
	if err == nil {
		_, err = store.Load()
	}
	if err == nil {
		err = store.Save(st)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.dev, r.kernel = newFakeDevices(), &fakeKernel{}
}

// A VM's port whose device is gone does not take the next device of that name, at whatever time the agent runs: it
// waits for the VM's hook. A port without a VM means its device by the name.
func TestS148_AVMsPortTakesNoOtherDeviceOfTheName(t *testing.T) {
	type step func(r *rig)
	goes := func(r *rig) { delete(r.dev.byName, "vnet0"); delete(r.dev.ipv6Off, "vnet0") }
	comes := func(r *rig) { r.dev.veth("vnet0", "02:00:00:00:00:77") }
	settles := func(r *rig) { r.settler.settle() }
	restarts := func(r *rig) {
		if err := r.restart(base); err != nil {
			r.t.Fatal(err)
		}
	}
	for name, steps := range map[string][]step{
		"while the agent runs":               {goes, settles, comes, settles},
		"between two looks":                  {goes, comes, settles},
		"while no agent runs":                {goes, comes, restarts},
		"gone while no agent runs":           {goes, restarts, comes, settles},
		"after a reboot":                     {(*rig).rebooted, restarts, comes, settles},
		"before the agent starts at a boot":  {(*rig).rebooted, comes, restarts},
		"after a reboot and another restart": {(*rig).rebooted, restarts, comes, settles, restarts},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, base)
			comes(r)
			if err := r.hook(ofVM(movingVM, "vnet0")); err != nil {
				t.Fatal(err)
			}
			if r.state.Of(id("vm1/net0")) == nil {
				t.Fatal("the VM's own device is not taken")
			}
			for _, s := range steps {
				s(r)
			}
			if r.state.Of(id("vm1/net0")) != nil || r.Active().Problems[id("vm1/net0")].Code != problem.OwnerAwaited {
				t.Errorf("the port has the device %+v, problem %+v", r.state.Of(id("vm1/net0")),
					r.Active().Problems[id("vm1/net0")])
			}
			if d := r.dev.byName["vnet0"]; d.AdminUp || r.dev.ipv6Off["vnet0"] {
				t.Errorf("the other VM's device was touched: %+v", r.dev.changes)
			}
			if r.connected.isPresent("vm1/net0") {
				t.Error("the port counts as one with a device")
			}
			if err := r.hook(ofVM(movingVM, "vnet0")); err != nil || r.state.Of(id("vm1/net0")) == nil {
				t.Errorf("the hook's next call does not connect it: %v, %+v", err, r.Active().Problems)
			}
		})
	}
}

// What a hook connects before its device is there takes the first device of the name, and no second one.
func TestS148_ADeviceThatTheHookAnnouncesIsTakenOnce(t *testing.T) {
	r := newRig(t, base)
	if err := r.hook(ofVM(movingVM, "vnet0")); err != nil {
		t.Fatal(err)
	}
	if c := r.Active().Problems[id("vm1/net0")].Code; c != problem.DeviceMissing {
		t.Errorf("it waits for its device by the problem %s", c)
	}
	r.dev.veth("vnet0", "02:00:00:00:00:77")
	r.settler.settle()
	first := r.state.Of(id("vm1/net0"))
	if first == nil {
		t.Fatal("the device is not taken")
	}
	delete(r.dev.byName, "vnet0")
	r.dev.veth("vnet0", "02:00:00:00:00:78")
	r.settler.settle()
	if h := r.state.Of(id("vm1/net0")); h != nil {
		t.Errorf("the next one is taken too: %+v", h)
	}
}

// By hand, and in a file, a name may be meant.
func TestS148_APortWithoutAVMMeansItsDeviceByTheName(t *testing.T) {
	r := newRig(t, base)
	if err := r.connect(spec.Port{Name: "by/hand", PortGroup: "web", Device: "tap0"}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		r.dev.veth("tap0", "02:00:00:00:00:77")
		r.dev.veth("pa", "02:00:00:00:00:0a")
		r.settler.settle()
		for _, name := range []string{"by/hand", "a"} {
			if r.state.Of(id(name)) == nil {
				t.Errorf("port %s does not take its device", name)
			}
		}
		delete(r.dev.byName, "tap0")
		delete(r.dev.byName, "pa")
		r.settler.settle()
	}
}

// The state of an earlier version does not say which devices VMs' ports were given: those that they hold are theirs.
func TestS148_VMsKeepTheirPortsOverAnUpgrade(t *testing.T) {
	r := newRig(t, base)
	r.dev.veth("vnet0", "02:00:00:00:00:77")
	if err := r.hook(ofVM(movingVM, "vnet0")); err != nil {
		t.Fatal(err)
	}
	store, err := state.Open(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	st, err := store.Load()
	if err != nil {
		t.Fatal(err)
	}
	st.Given = nil
	if err := store.Save(st); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := r.restart(base); err != nil {
			t.Fatal(err)
		}
		if r.state.Of(id("vm1/net0")) == nil || r.state.GivenTo(id("vm1/net0")) == nil {
			t.Fatalf("the port has lost its device: %+v", r.Active().Problems[id("vm1/net0")])
		}
	}
}

// Somebody who has put a device into a bridge meanwhile wants it up.
func TestS149_ADeviceThatAnotherHolderHasStaysUp(t *testing.T) {
	r := newRig(t, base)
	r.dev.veth("pa", "02:00:00:00:00:0a")
	r.settler.settle()
	r.dev.byName["pa"].Master = hostdev.Master{Name: "br0", Driver: "bridge"}
	r.settler.settle()
	if r.state.Of(id("a")) != nil || !r.dev.byName["pa"].AdminUp {
		t.Errorf("it was set down: %v", r.dev.changes)
	}
	r.dev.byName["pa"].Master = hostdev.Master{}
	r.settler.settle()
	r.dev.changes = nil
	if err := r.apply("switches: [{name: lab}]"); err != nil || r.dev.byName["pa"].AdminUp != true {
		t.Errorf("%v, done: %v", err, r.dev.changes)
	}
}

// Two guests of different kinds may have one name: what one does never ends the other's port.
func TestS150_APortOfAnotherVMIsNotReplacedByItsName(t *testing.T) {
	r := newRig(t, base)
	r.dev.veth("vnet0", "02:00:00:00:00:77")
	r.dev.veth("vnet1", "02:00:00:00:00:78")
	if err := r.hook(ofVM(movingVM, "vnet0")); err != nil {
		t.Fatal(err)
	}
	if err := r.hook(ofVM(anotherVM, "vnet1")); !invalid(err) || !strings.Contains(err.Error(), movingVM) {
		t.Errorf("another VM's adapter of the name: %v", err)
	}
	if err := r.disconnect(api.Disconnect{Port: "vm1/net0", VM: anotherVM}); !notFound(err) {
		t.Errorf("another VM disconnects it: %v", err)
	}
	if h := r.state.Of(id("vm1/net0")); h == nil || h.Device != "vnet0" {
		t.Fatalf("the port has %+v", h)
	}
	delete(r.dev.byName, "vnet0")
	r.settler.settle()
	if err := r.hook(ofVM(anotherVM, "vnet1")); err != nil {
		t.Errorf("the name of a VM that is gone: %v", err)
	}
	if err := r.disconnect(api.Disconnect{Port: "vm1/net0", VM: strings.ToUpper(anotherVM)}); err != nil {
		t.Errorf("its own VM disconnects it: %v", err)
	}
}

// A guest that ended while no agent answered has left a note: its port is gone once an agent runs. One that was started
// again has a device.
func TestS151_PortsOfGuestsThatEndedUnheardAreRemoved(t *testing.T) {
	r := newRig(t, base)
	r.dev.veth("vnet0", "02:00:00:00:00:77")
	r.dev.veth("vnet1", "02:00:00:00:00:78")
	other := ofVM(anotherVM, "vnet1")
	other.Name, other.MAC = "vm2/net0", "52:54:00:00:00:02"
	for _, q := range []api.Connect{ofVM(movingVM, "vnet0"), other} {
		if err := r.hook(q); err != nil {
			t.Fatal(err)
		}
	}
	delete(r.dev.byName, "vnet0")
	if err := r.restart(base); err != nil {
		t.Fatal(err)
	}
	if err := r.commands.endAll([]string{strings.ToUpper(movingVM), anotherVM}); err != nil {
		t.Fatal(err)
	}
	names := func() (list []string) {
		for _, p := range r.saved().Ports {
			list = append(list, p.Name)
		}
		return list
	}
	if got := names(); !slices.Equal(got, []string{"vm2/net0"}) {
		t.Errorf("ports %v are left", got)
	}
}

// libvirt is asked about domains that ports await: one that runs, as after a start without an agent, is connected.
func TestS148_LibvirtIsAskedAboutDomainsThatPortsAwait(t *testing.T) {
	r := newRig(t, base)
	r.dev.veth("vnet0", "02:00:00:00:00:77")
	if err := r.hook(ofVM(movingVM, "vnet0")); err != nil {
		t.Fatal(err)
	}
	l := libvirtDomains{awaits: func(id plan.PortID) bool {
		return r.Active().Problems[id].Code == problem.OwnerAwaited
	}}
	look := func(wanted, awaited int) {
		t.Helper()
		now := uplinks.InForce{Plan: r.Active().Plan, Devices: map[plan.PortID]hostdev.Device{}}
		if h := r.state.Of(id("vm1/net0")); h != nil {
			now.Devices[h.ID] = *r.dev.byName["vnet0"]
		}
		if w, a := l.followed(now); len(w) != wanted || len(a) != awaited {
			t.Errorf("followed %v, awaited %v", w, a)
		}
	}
	look(1, 0)
	delete(r.dev.byName, "vnet0")
	r.settler.settle()
	look(1, 1)
}

// A guest that is restarted has another device of the name at once: its hook may be heard before the notifications of
// the old one's end and of the new one.
func TestS148_AHookIsHeardBeforeTheNotificationsOfItsDevice(t *testing.T) {
	for name, ask := range map[string]func(*rig) error{
		"started": func(r *rig) error { return r.hook(ofVM(movingVM, "vnet0")) },
		"arrives": func(r *rig) error {
			return r.command(func(ctx context.Context) error {
				_, err := r.commands.ConnectIncoming(ctx, api.Incoming{Connect: ofVM(movingVM, "vnet0")})
				return err
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, base)
			r.dev.veth("vnet0", "02:00:00:00:00:77")
			if err := ask(r); err != nil {
				t.Fatal(err)
			}
			before := r.dev.byName["vnet0"]
			now := r.dev.veth("vnet0", "02:00:00:00:00:77")
			r.dev.byName["vnet0"], r.dev.unheard = before, map[string]*hostdev.Device{"vnet0": now}
			if err := ask(r); err != nil {
				t.Fatal(err)
			}
			r.settler.settle()
			if h := r.state.Of(id("vm1/net0")); h == nil || h.Index != now.Index {
				t.Errorf("the port has %+v in place of device %d: %+v", h, now.Index,
					r.Active().Problems[id("vm1/net0")])
			}
		})
	}
}
