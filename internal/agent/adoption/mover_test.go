package adoption

import (
	"testing"

	"heddle/internal/agent/adopt"
	"heddle/internal/agent/devices"
	"heddle/internal/host/hostdev"
	"heddle/internal/host/hostnet"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// fakeDevices are devices in memory, by their names.
type fakeDevices map[string]hostdev.Device

// pair adds two ends of a veth.
func (f fakeDevices) pair(host, end, alias string) {
	f[host] = hostdev.Device{Index: 3, Name: host, Kind: hostdev.Veth, Driver: "veth", Alias: alias,
		Peer: hostdev.Peer{Index: 4, Seen: true}}
	f[end] = hostdev.Device{Index: 4, Name: end, Kind: hostdev.Veth, Driver: "veth", Alias: alias,
		Peer: hostdev.Peer{Index: 3, Seen: true}}
}

func (f fakeDevices) Device(name string) (hostdev.Device, bool, error) {
	d, there := f[name]
	return d, there, nil
}

func (f fakeDevices) DeviceAt(index uint32) (d hostdev.Device, there bool, err error) {
	for _, d := range f {
		if d.Index == index {
			return d, true, nil
		}
	}
	return d, false, nil
}

func (f fakeDevices) Delete(d hostdev.Device) error {
	for name, other := range f {
		if name == d.Name || !d.Peer.Elsewhere && d.Peer.Index == other.Index {
			delete(f, name)
		}
	}
	return nil
}

func (fakeDevices) SetUp(hostdev.Device, bool) error   { return nil }
func (fakeDevices) SetIPv6(hostdev.Device, bool) error { return nil }

func TestS81_APairThatACrashLeftUnmarkedIsRemovedAndAnOperatorsIsNot(t *testing.T) {
	r := &adopt.Record{Port: spec.Port{Name: "vmk0", Device: "vmk0", Switch: "lab"},
		Config: &hostnet.Config{Device: "eth0"}}
	for alias, removed := range map[string]bool{"": true,
		devices.Alias("test", plan.PortID{Switch: "lab", Name: "vmk0"}): true, "an operator's": false} {
		f := fakeDevices{}
		f.pair("vmk0", devices.SwitchEnd("vmk0"), alias)
		m := &mover{agent: "test", dev: f}
		if err := m.Do(adopt.RemovePair, r); err != nil {
			t.Fatal(err)
		}
		if _, there, _ := f.Device("vmk0"); there == removed {
			t.Errorf("alias %q: there %v", alias, there)
		}
	}
	f := fakeDevices{} // without the switch's end
	f["vmk0"] = hostdev.Device{Index: 3, Name: "vmk0", Kind: hostdev.Veth, Driver: "veth",
		Peer: hostdev.Peer{Index: 2, Elsewhere: true, Seen: true}}
	if err := (&mover{agent: "test", dev: f}).Do(adopt.RemovePair, r); err != nil {
		t.Fatal(err)
	}
	if _, there, _ := f.Device("vmk0"); !there {
		t.Error("an operator's device is removed")
	}
}
