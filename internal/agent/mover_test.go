package agent

import (
	"testing"

	"heddle/internal/agent/adopt"
	"heddle/internal/agent/devices"
	"heddle/internal/host/hostdev"
	"heddle/internal/host/hostnet"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

func TestS81_APairThatACrashLeftUnmarkedIsRemovedAndAnOperatorsIsNot(t *testing.T) {
	r := &adopt.Record{Port: spec.Port{Name: "vmk0", Device: "vmk0", Switch: "lab"},
		Config: &hostnet.Config{Device: "eth0"}}
	for alias, removed := range map[string]bool{"": true,
		devices.Alias("test", plan.PortID{Switch: "lab", Name: "vmk0"}): true, "an operator's": false} {
		f := newFakeDevices()
		if err := f.CreatePair(hostdev.Pair{Host: "vmk0", Switch: devices.SwitchEnd("vmk0"),
			MAC: plan.MAC{2, 0, 0, 0, 0, 1}, MTU: 1500, Alias: alias}); err != nil {
			t.Fatal(err)
		}
		m := &mover{agent: "test", dev: f}
		if err := m.Do(adopt.RemovePair, r); err != nil {
			t.Fatal(err)
		}
		if _, there, _ := f.Device("vmk0"); there == removed {
			t.Errorf("alias %q: there %v", alias, there)
		}
	}
	f := newFakeDevices()
	f.veth("vmk0", "02:00:00:00:00:01") // without the switch's end
	if err := (&mover{agent: "test", dev: f}).Do(adopt.RemovePair, r); err != nil {
		t.Fatal(err)
	}
	if _, there, _ := f.Device("vmk0"); !there {
		t.Error("an operator's device is removed")
	}
}
