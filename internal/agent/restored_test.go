package agent

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"heddle/internal/api"
	"heddle/internal/host/hostdev"
	"heddle/internal/observe/event"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
)

const restoredFile = inside + "  - {name: vmk0, switch: lab, portGroup: web, role: host, mtu: 1400, " +
	"addresses: [192.0.2.1/24, \"2001:db8::1/64\"], gateway: 192.0.2.254}\n"

// What others take away from a host port's interface is there again after the next look, with an event.
func TestS165_WhatOthersTakeAwayIsRestored(t *testing.T) {
	takeAway := map[string]func(r *rig, vmk *hostdev.Device){
		"an address": func(r *rig,
			vmk *hostdev.Device) {
			r.dev.addresses[vmk.Index] = r.dev.addresses[vmk.Index][:1]
		},
		"all addresses": func(r *rig, vmk *hostdev.Device) { r.dev.addresses[vmk.Index] = nil },
		"the route":     func(r *rig, vmk *hostdev.Device) { r.dev.routes[vmk.Index] = "" },
		"the MTU":       func(_ *rig, vmk *hostdev.Device) { vmk.MTU = 1300 },
		"the MAC":       func(_ *rig, vmk *hostdev.Device) { vmk.MAC = plan.MAC{2, 1, 1, 1, 1, 1} },
	}
	for how, look := range map[string]func(r *rig) []api.Effect{
		"a notification": func(r *rig) []api.Effect { r.restoring.Doubt(); r.settler.settle(); return nil },
		"a minute":       func(r *rig) []api.Effect { r.restoring.Everything(); r.settler.settle(); return nil },
		"apply": func(r *rig) (all []api.Effect) {
			if err := r.command(func(ctx context.Context) error {
				out, err := r.files.Apply(ctx, api.Apply{File: "heddle.yaml", Content: restoredFile})
				if err == nil {
					all = out.Effects
				}
				return err
			}); err != nil {
				t.Error(err)
			}
			return all
		},
	} {
		for what, take := range takeAway {
			t.Run(what+", "+how, func(t *testing.T) {
				r := newRig(t, restoredFile)
				vmk := r.dev.byName["vmk0"]
				addresses, route := slices.Clone(r.dev.addresses[vmk.Index]), r.dev.routes[vmk.Index]
				if len(addresses) != 2 || route == "" {
					t.Fatalf("at first: %v, %q", addresses, route)
				}
				mac := vmk.MAC
				take(r, vmk)
				before := r.events.Last()
				effects := look(r)
				slices.SortFunc(r.dev.addresses[vmk.Index], netip.Prefix.Compare)
				got := r.dev.addresses[vmk.Index]
				if !slices.Equal(got, addresses) || r.dev.routes[vmk.Index] != route || vmk.MTU != 1400 ||
					vmk.MAC != mac {
					t.Errorf("it has %v, %q, %d, %v", got, r.dev.routes[vmk.Index], vmk.MTU, vmk.MAC)
				}
				isApply := how == "apply"
				if told := r.since(before, event.Restored); !isApply && len(told) == 0 {
					t.Error("no event")
				}
				link := what == "the MTU" || what == "the MAC" // part of the plan that apply makes anew
				if isApply && !link && (len(effects) == 0 || effects[0].Kind != api.EffectRestored) {
					t.Errorf("apply says %+v", effects)
				}
			})
		}
	}
}

// since returns the events of a kind after one.
func (r *rig) since(seq uint64, kind event.Kind) (list []event.Event) {
	if r.events.Last() == seq {
		return nil
	}
	all, _, err := r.events.After(context.Background(), seq)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, e := range all {
		if e.Kind == kind {
			list = append(list, e)
		}
	}
	return list
}

// An uplink that others took out of promiscuous mode, and a port's device on which they let the host speak, are as
// before.
func TestS165_SettingsOfDevicesAreRestored(t *testing.T) {
	r := newRig(t, "")
	uplink, port := r.dev.nic("eno1", 1500), r.dev.veth("pa", "02:00:00:00:00:0a")
	if err := r.apply(base); err != nil {
		t.Fatal(err)
	}
	uplink.FlagPromiscuous = false
	r.dev.ipv6Off["pa"] = false
	before := r.events.Last()
	r.restoring.Everything()
	r.settler.settle()
	told := r.since(before, event.Restored)
	if !uplink.FlagPromiscuous || !r.dev.ipv6Off[port.Name] || len(told) != 2 {
		t.Errorf("promiscuous %v, IPv6 off %v, %v", uplink.FlagPromiscuous, r.dev.ipv6Off, told)
	}
}

// Where the host has switched IPv6 off on the interface, its IPv4 addresses serve, the problem names the parameter, and
// IPv6 is there once it is on again.
func TestS166_IPv4ServesWhereIPv6IsOff(t *testing.T) {
	r := newRig(t, "")
	r.dev.ipv6Off["vmk0"] = true
	r.dev.fail["address vmk0 + 2001:db8::1/64"] = errors.New("permission denied")
	if err := r.apply(restoredFile); err != nil {
		t.Fatal(err)
	}
	vmk := r.dev.byName["vmk0"]
	why := r.Active().Problems[id("vmk0")]
	if got := r.dev.addresses[vmk.Index]; len(got) != 1 || r.state.Of(id("vmk0")) == nil ||
		why.Code != problem.IPv6Off || !strings.Contains(why.Text(), "net.ipv6.conf.vmk0.disable_ipv6") {
		t.Errorf("it has %v, problem %q", got, why)
	}
	r.lastsUntilAsked(problem.IPv6Off)
	r.dev.ipv6Off["vmk0"] = false
	delete(r.dev.fail, "address vmk0 + 2001:db8::1/64")
	r.restoring.Everything()
	r.settler.settle()
	if got := r.dev.addresses[vmk.Index]; len(got) != 2 || !r.Active().Problems[id("vmk0")].None() {
		t.Errorf("it has %v, problem %q", got, r.Active().Problems[id("vmk0")])
	}
}

// lastsUntilAsked: the problem of vmk0 stays while the kernel is not asked again, and has no further event.
func (r *rig) lastsUntilAsked(want problem.Code) {
	r.t.Helper()
	before := r.events.Last()
	for range 2 {
		r.settler.settle()
	}
	if why := r.Active().Problems[id("vmk0")]; why.Code != want {
		r.t.Errorf("after a look without doubt the problem is %q, want %s", why, want)
	}
	if told := r.since(before, event.Impaired); len(told) > 0 {
		r.t.Errorf("events: %+v", told)
	}
}

// A setting that the kernel refuses stays a problem until it can be made.
func TestS166_ASettingThatCannotBeMadeStaysAProblem(t *testing.T) {
	r := newRig(t, "")
	r.dev.fail["address vmk0 + 192.0.2.1/24"] = errors.New("no buffer space")
	if err := r.apply(restoredFile); err != nil {
		t.Fatal(err)
	}
	r.lastsUntilAsked(problem.HostInterface)
	delete(r.dev.fail, "address vmk0 + 192.0.2.1/24")
	r.restoring.Everything()
	r.settler.settle()
	r.lastsUntilAsked("")
}

// A port or uplink that is up and no longer in full service has an event, and so has the end of that.
func TestS166_AProblemOfWhatIsUpHasAnEvent(t *testing.T) {
	r := newRig(t, "")
	uplink := r.dev.nic("eno1", 1500)
	uplink.AdminUp, uplink.Carrier = true, true
	if err := r.apply(base); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		mtu int
		to  string
	}{{1400, string(problem.LowMTU)}, {1500, ""}} {
		before := r.events.Last()
		uplink.MTU = c.mtu
		r.settler.settle()
		if list := r.since(before, event.Impaired); len(list) != 1 || list[0].To != c.to || list[0].Uplink != "u1" {
			t.Errorf("MTU %d: %+v", c.mtu, list)
		}
	}
}

// A first start with a card whose MTU is raised a moment later is no error: the uplink has a problem until then.
func TestS167_AStartDoesNotWaitForTheMTUOfACard(t *testing.T) {
	r := &rig{t: t, dev: newFakeDevices(), kernel: &fakeKernel{}, dir: t.TempDir()}
	uplink := r.dev.nic("eno1", 1500)
	uplink.AdminUp = true
	if err := r.restart(strings.Replace(base, "- name: lab\n", "- name: lab\n    mtu: 9000\n", 1)); err != nil {
		t.Fatal(err)
	}
	if why := r.Active().Problems[id("u1")]; why.Code != problem.LowMTU {
		t.Errorf("the problem is %q", why)
	}
	uplink.MTU = 9000
	r.settler.settle()
	if why := r.Active().Problems[id("u1")]; !why.None() {
		t.Errorf("with the MTU: %q", why)
	}
}
