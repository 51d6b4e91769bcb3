package hostdev

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"heddle/internal/test/testkit"
)

// all shows every device, without the numbers by which a Host tells them apart.
func all(t *testing.T, h *Host) map[string]Device {
	t.Helper()
	shown := map[string]Device{}
	for name := range h.names {
		d, found, err := h.Device(name)
		if err != nil || !found {
			t.Fatalf("%s: %v %v", name, found, err)
		}
		d.Born = 0
		shown[name] = d
	}
	return shown
}

// A Host whose notifications were all lost knows, after it has read its devices again, what a new one knows.
func TestRefresh_FindsWhatNoNotificationTold(t *testing.T) {
	testkit.Tool(t, "ip")
	host, vm := guest(t)
	for _, command := range []string{"ip link add va type veth peer name vb", "ip link add vc type veth peer name vd",
		"ip address add 10.7.0.1/24 dev vd"} {
		run(t, host, command)
	}
	h := openIn(t, host)
	before := all(t, h)
	for _, change := range []struct {
		what     string
		commands []string
	}{
		{"nothing", nil},
		{"renamed, each to the other's name", []string{"ip link set va name vx", "ip link set vb name va",
			"ip link set vx name vb"}},
		{"an address comes and one goes", []string{"ip address add 10.8.0.1/24 dev va",
			"ip address del 10.7.0.1/24 dev vd"}},
		{"a device is another one of the same name", []string{"ip link del vc",
			"ip link add vc type veth peer name ve"}},
		{"a device goes", []string{"ip link del va"}},
	} {
		t.Run(change.what, func(t *testing.T) {
			for _, c := range change.commands {
				run(t, host, c)
			}
			same(t, h, host.Name, change.what, openIn(t, host))
		})
	}
	for _, c := range []string{"ip link set eth0 mtu 1400", "ip link set eth0 down", "ip link set eth0 name eth1",
		"ip link del eth1"} {
		run(t, vm, c)
		same(t, h, host.Name, c, openIn(t, host))
	}
	if reflect.DeepEqual(before, all(t, h)) {
		t.Error("nothing has changed")
	}
}

func same(t *testing.T, h *Host, ns, what string, fresh *Host) {
	t.Helper()
	if err := h.Refresh(); err != nil {
		t.Fatalf("%s: %s: %v", ns, what, err)
	}
	if got, want := all(t, h), all(t, fresh); !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\n%+v\nwant\n%+v", what, got, want)
	}
}

// Reading a device again that has not changed takes little memory: a thousand of them are read every minute.
func TestRefresh_MakesLittleGarbage(t *testing.T) {
	testkit.Tool(t, "ip")
	host, vm := testkit.NS(t, "many"), testkit.NS(t, "far")
	const devices = 30
	for i := range devices {
		run(t, host, fmt.Sprintf("ip link add p%d type veth peer name p%d netns %s", i, i, vm.Name))
	}
	h := openIn(t, host)
	took := make([]uint64, 0, 5)
	for range cap(took) {
		if n := len(all(t, h)); n != devices+1 || len(h.peers) != devices {
			t.Fatalf("%d devices, %d other ends", n, len(h.peers))
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if err := h.Refresh(); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		took = append(took, after.TotalAlloc-before.TotalAlloc)
	}
	if least, most := slices.Min(took), uint64(devices*2<<10); least > most {
		t.Errorf("reading %d devices again took %d bytes, want at most %d", devices, least, most)
	}
	if len(h.shown) != devices+1 {
		t.Errorf("%d devices are as they were, and %d are shown from memory", devices+1, len(h.shown))
	}
}

// A Host that has heard nothing yet is told which device has a name; it still hears what else has changed.
func TestLook_FindsWhoHasANameNow(t *testing.T) {
	testkit.Tool(t, "ip")
	host, _ := guest(t)
	run(t, host, "ip link add va type veth peer name vb")
	run(t, host, "ip link add vc type veth peer name vd")
	h := openIn(t, host)
	look := func(name string, want bool) {
		t.Helper()
		if changed, err := h.Look(name); err != nil || changed != want {
			t.Errorf("look for %s: changed %v, want %v (%v)", name, changed, want, err)
		}
		fresh := openIn(t, host)
		got, have, err := h.Device(name)
		now, there, errNow := fresh.Device(name)
		if err != nil || errNow != nil || have != there || got.Index != now.Index {
			t.Errorf("%s is %+v (%v), in the kernel %+v (%v)", name, got, err, now, errNow)
		}
	}
	look("va", false)
	look("nobody", false)
	for _, c := range []string{"ip link del va", "ip link add va type veth peer name vb"} {
		run(t, host, c)
	}
	look("va", true)
	look("va", false)
	run(t, host, "ip link set vc name ve")
	look("vc", true)
	look("ve", false)
	run(t, host, "ip link del va")
	look("va", true)
	look("va", false)
	run(t, host, "ip link set ve mtu 1400")
	look("ve", false)
	if d, _, _ := h.Device("ve"); d.MTU != 1500 {
		t.Error("its MTU was read: the notification of it would be no news")
	}
}
