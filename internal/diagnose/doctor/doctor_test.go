package doctor

import (
	"strings"
	"testing"
	"time"

	"heddle/internal/api"
)

// soundHost returns a host with an uplink, two guests and a host interface, and without faults.
func soundHost() Facts {
	return Facts{
		Kernel: Kernel{Release: "6.12.1", Major: 6, Minor: 12, BTF: true, TCX: true, JIT: true, Backlog: 1000},
		Pins: Pins{Dir: "/run/heddle/bpf", Mounted: true, Lasting: true, Agents: []string{"default", "host2"},
			Alive: map[string]bool{"default": true, "host2": true}},
		Agent:  Agent{Name: "default", Running: true, Own: "v1", Version: "v1", Remembers: true},
		Config: Config{File: "/etc/heddle/heddle.yaml", Exists: true}, Machine: "0123456789abcdef0123456789abcdef\n",
		Devices: map[string]Device{
			"eno1": {Name: "eno1", MTU: 1500, Up: true, Promiscuous: true,
				Features: map[string]bool{"rx-vlan-filter": true, "rx-gro": true}},
			"pa":   {Name: "pa", Driver: "veth", MTU: 1500, Up: true, PeerMTU: 1500},
			"tap1": {Name: "tap1", Driver: "tun", MTU: 1500, Up: true},
			"vmk0": {Name: "vmk0", Driver: "veth", MTU: 1500, Up: true, Addresses: []string{"192.0.2.1/24"}},
			"eno2": {Name: "eno2", MTU: 1500, Up: true, Addresses: []string{"198.51.100.7/24"}, Master: "br0",
				MasterKind: "bridge", Manager: "NetworkManager"},
			"lo": {Name: "lo", MTU: 65536, Up: true, Addresses: []string{"127.0.0.1/8", "::1/128"}},
		},
		Uplinks: []Uplink{{Switch: "lab", Name: "uplink1", Device: "eno1", SwitchMTU: 1500, State: api.Up}},
		Ports: []Port{
			{Switch: "lab", Name: "a", Device: "pa", VLAN: "access 100", SwitchMTU: 1500, State: api.Up},
			{Switch: "lab", Name: "b", Device: "tap1", VLAN: "access 100", SwitchMTU: 1500, State: api.Up},
			{Switch: "lab", Name: "vmk0", Device: "vmk0", VLAN: "access 10", Host: true, SwitchMTU: 1500,
				State: api.Up},
		},
		Unknown: map[Fact]string{},
	}
}

func TestASoundHostHasNoFinding(t *testing.T) {
	for _, f := range Examine(soundHost()) {
		if f.Level != OK {
			t.Errorf("%s: %s: %s", f.Check, f.Level, f.Text)
		}
	}
}

// with changes one device.
func with(f *Facts, name string, change func(*Device)) {
	d := f.Devices[name]
	change(&d)
	f.Devices[name] = d
}

func TestEveryCheckFindsItsFaultAndNamesARemedy(t *testing.T) {
	covered := map[string]bool{}
	for _, c := range []struct {
		check  string
		level  Level
		text   string // part of the finding
		remedy string // part of the remedy
		spoil  func(*Facts)
	}{
		{"kernel", Wrong, "6.1.0 is older than 6.6", "newer kernel", func(f *Facts) {
			f.Kernel.Release, f.Kernel.Minor = "6.1.0", 1
		}},
		{"kernel", Note, "does not describe its types", "CONFIG_DEBUG_INFO_BTF", func(f *Facts) {
			f.Kernel.BTF = false
		}},
		{"kernel", Note, "PREEMPT_RT", "PREEMPT_RT_NEEDS_BH_LOCK /boot/config-6.12.1", func(f *Facts) {
			f.Kernel.Realtime = true
		}},
		{"kernel", Wrong, "lockdown", "lockdown=integrity", func(f *Facts) { f.Kernel.Confidential = true }},
		{"tcx", Wrong, "cannot attach", "CONFIG_NET_XGRESS", func(f *Facts) { f.Kernel.TCX = false }},
		{"bpf JIT", Wrong, "interpreted", "bpf_jit_enable=1", func(f *Facts) { f.Kernel.JIT = false }},
		{"receive backlog", Wrong, "2 ports of lab, access 100", "netdev_max_backlog=8", func(f *Facts) {
			f.Kernel.Backlog = 1
		}},
		{"uplinks", Wrong, "uplink lab/tunnel: endpoint vmk0: there is no device", "heddle uplink show tunnel",
			func(f *Facts) {
				f.Uplinks = append(f.Uplinks, Uplink{Switch: "lab", Name: "tunnel", Device: "vx-lab", State: api.Down,
					Reason: "endpoint vmk0: there is no device vmk0", Tunnel: true})
			}},
		{"bpf file system", Wrong, "process's group alone", "mount -t bpf", func(f *Facts) { f.Pins.Lasting = false }},
		{"bpf file system", Wrong, "ends with its agent", "restart the agent", func(f *Facts) {
			f.Pins.Mounted = false
		}},
		{"pins", Wrong, "agent host2", "heddle down --agent host2", func(f *Facts) { f.Pins.Alive["host2"] = false }},
		{"pins", Wrong, "nothing pinned", "restart", func(f *Facts) { f.Pins.Agents = []string{"host2"} }},
		{"agent", Wrong, "does not run: the kernel goes on", "systemctl start", func(f *Facts) {
			f.Agent.Running = false
		}},
		{"agent", Wrong, "nothing of it is in the kernel", "heddle down --purge", func(f *Facts) {
			f.Agent.Running, f.Pins.Agents = false, []string{"host2"}
		}},
		{"agent", Note, "never has", "enable --now", func(f *Facts) {
			f.Agent.Running, f.Agent.Remembers = false, false
		}},
		{"agent", Wrong, "version v0", "restart", func(f *Facts) { f.Agent.Version = "v0" }},
		{"agent", Note, "a warning of the agent's", "heddle apply -f", func(f *Facts) {
			f.Agent.Warnings = []string{"a warning of the agent's"}
		}},
		{"state directory", Wrong, "is read-only", "make room there", func(f *Facts) {
			f.Agent.StateFault = "the file system of the state directory /var/lib/heddle/default is read-only"
		}},
		{"controllers", Wrong, "no controller for 1m0s: refused", "a controller runs and is reached", func(f *Facts) {
			f.Agent.Member = &api.Membership{Member: true, Since: f.Clock.Now.Add(-time.Minute), Error: "refused"}
		}},
		{"controllers", Wrong, "its identity in that cluster is gone", "heddle host join --replace", func(f *Facts) {
			f.Agent.Member = &api.Membership{Epoch: 1, Revision: 7}
		}},
		{"configuration", Wrong, "line 3", "heddle check -f", func(f *Facts) { f.Config.Faults = []string{"line 3"} }},
		{"uplinks", Wrong, "no device eno1", "ip link", func(f *Facts) { delete(f.Devices, "eno1") }},
		{"uplinks", Wrong, "no carrier", "ip link set eno1 up", func(f *Facts) {
			with(f, "eno1", func(d *Device) { d.Up = false })
		}},
		{"uplinks", Wrong, "because", "uplink show uplink1", func(f *Facts) {
			f.Uplinks[0].State, f.Uplinks[0].Reason = api.Pending, "because"
		}},
		{"uplinks", Note, "has no device", "bind one", func(f *Facts) { f.Uplinks[0].Device = "" }},
		{"ports", Wrong, "no device pa", "port disconnect a", func(f *Facts) { delete(f.Devices, "pa") }},
		{"ports", Wrong, "because", "port show a", func(f *Facts) {
			f.Ports[0].State, f.Ports[0].Reason = api.Pending, "because"
		}},
		{"ports", Note, "is down: because", "port show a", func(f *Facts) {
			f.Ports[0].State, f.Ports[0].Reason = api.Down, "because"
		}},
		{"mtu", Wrong, "eno1 has MTU 1400", "mtu 1500", func(f *Facts) {
			with(f, "eno1", func(d *Device) { d.MTU = 1400 })
		}},
		{"mtu", Wrong, "adapter has MTU 9000", "guest's MTU to 1500", func(f *Facts) {
			with(f, "pa", func(d *Device) { d.PeerMTU = 9000 })
		}},
		{"mtu", Note, "pair of pa has MTU 1400", "ip link set pa mtu 1500", func(f *Facts) {
			with(f, "pa", func(d *Device) { d.PeerMTU = 1400 })
		}},
		{"mtu", Note, "tap1 has MTU 1400", "ip link set tap1 mtu 1500", func(f *Facts) {
			with(f, "tap1", func(d *Device) { d.MTU = 1400 })
		}},
		{"other owners", Wrong, "bridge br0", "ip link set eno1 nomaster", func(f *Facts) {
			with(f, "eno1", func(d *Device) { d.Master, d.MasterKind = "br0", "bridge" })
		}},
		{"other owners", Wrong, "bond bond0", "use bond0 itself", func(f *Facts) {
			with(f, "eno1", func(d *Device) { d.Master, d.MasterKind = "bond0", "bond" })
		}},
		{"other owners", Wrong, "ovs-system", "ovs-vsctl del-port pa", func(f *Facts) {
			with(f, "pa", func(d *Device) { d.Master, d.MasterKind = "ovs-system", "openvswitch" })
		}},
		{"other owners", Wrong, "eno1.100 on top", "role: host", func(f *Facts) {
			with(f, "eno1", func(d *Device) { d.Upper = []string{"eno1.100"} })
		}},
		{"other owners", Note, "has addresses on device pa", "ip addr flush", func(f *Facts) {
			with(f, "pa", func(d *Device) { d.Addresses = []string{"203.0.113.1/24"} })
		}},
		{"offloads", Wrong, "LRO", "ethtool -K eno1 lro off", func(f *Facts) {
			f.Devices["eno1"].Features["rx-lro"] = true
		}},
		{"offloads", Note, "rx-gro-hw", "rx-gro-hw off", func(f *Facts) {
			f.Devices["eno1"].Features["rx-gro-hw"] = true
		}},
		{"offloads", Wrong, "rx-vlan-filter", "rx-vlan-filter off", func(f *Facts) {
			with(f, "eno1", func(d *Device) { d.Promiscuous = false })
		}},
		{"other programs", Wrong, "XDP", "xdp off", func(f *Facts) {
			with(f, "eno1", func(d *Device) {
				d.Before = []api.ProgramBefore{{Device: "eno1", Hook: api.HookXDP, Program: 7}}
			})
		}},
		{"other programs", Wrong, "program heddle_ingress (id 7, link 8) runs before the switch",
			"bpftool link detach id 8", func(f *Facts) {
				with(f, "pa", func(d *Device) {
					d.Before = []api.ProgramBefore{{Device: "pa", Hook: "ingress", Name: "heddle_ingress", Program: 7,
						Link: 8}}
				})
			}},
		{"other programs", Wrong, "of agent hosa", "heddle down --agent hosa", func(f *Facts) {
			with(f, "pa", func(d *Device) {
				d.Before = []api.ProgramBefore{{Device: "pa", Hook: "ingress", Name: "heddle_ingress", Program: 7,
					Link: 8, Agent: "hosa"}}
			})
		}},
		{"other programs", Wrong, "port lab/vmk0: program (id 7) runs", "bpftool prog show id 7", func(f *Facts) {
			f.Ports[2].Before = []api.ProgramBefore{{Device: "sw-vmk0", Hook: "ingress", Program: 7}}
		}},
		{"other programs", Wrong, "program is not on device pa", "restart the agent", func(f *Facts) {
			with(f, "pa", func(d *Device) { d.Detached = true })
		}},
		{"other programs", Wrong, "switched twice", "bpftool link detach id 8", func(f *Facts) {
			with(f, "pa", func(d *Device) {
				d.Former = []api.ProgramBefore{{Device: "pa", Hook: "ingress", Name: "heddle_ingress", Program: 7,
					Link: 8}}
			})
		}},
		{"other programs", Note, "tcx program spy (id 7)", "tc filter show dev pa", func(f *Facts) {
			with(f, "pa", func(d *Device) { d.Behind = []string{"tcx program spy (id 7)"} })
		}},
		{"managers", Note, "NetworkManager configures device eno1", "managed no", func(f *Facts) {
			with(f, "eno1", func(d *Device) { d.Manager = "NetworkManager" })
		}},
		{"managers", Note, "systemd-networkd", "Unmanaged=yes", func(f *Facts) {
			with(f, "pa", func(d *Device) { d.Manager = "systemd-networkd" })
		}},
		{"host interfaces", Note, "both in 192.0.2.0/24", "eno2", func(f *Facts) {
			with(f, "eno2", func(d *Device) { d.Addresses = []string{"192.0.2.9/25"} })
		}},
		{"host interfaces", Wrong, "rp_filter", "rp_filter=2", func(f *Facts) {
			with(f, "eno2", func(d *Device) { d.Addresses, d.StrictReversePath = []string{"192.0.2.9/24"}, true })
		}},
		{"host interfaces", Note, "routes between", "ip_forward=0", func(f *Facts) {
			f.Forwarding = true
			f.Ports = append(f.Ports, Port{Switch: "lab", Name: "vmk1", Device: "vmk1", VLAN: "access 20", Host: true,
				SwitchMTU: 1500, State: api.Up})
			f.Devices["vmk1"] = Device{Name: "vmk1", Addresses: []string{"203.0.113.1/24"}}
		}},
		{"aliases", Note, "device lo has the alias heddle/default/x/y", "ip link set dev lo alias", func(f *Facts) {
			f.Agent.Lookalikes = []string{"device lo has the alias heddle/default/x/y and was not made by this " +
				"agent: it is left alone"}
		}},
		{"machine-id", Note, "is empty or missing", "systemd-machine-id-setup", func(f *Facts) { f.Machine = "" }},
		{"machine-id", Note, "is empty or missing", "systemd-machine-id-setup", func(f *Facts) {
			f.Machine = "uninitialized\n"
		}},
		{"clock", Wrong, "1970-01-01 00:01:00, and this program was made on 2026-11-01", "date -s", func(f *Facts) {
			f.Clock = Clock{time.Unix(60, 0), time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)}
		}},
		{"network", Wrong, "VLAN 20 does not pass", "add it to the trunk", func(f *Facts) {
			f.Agent.Probed = 2
			f.Agent.Network = []api.NetworkFinding{{Text: "VLAN 20 does not pass between a/uplink1 and b/uplink1",
				Remedy: "add it to the trunk of a/uplink1"}}
		}},
		{"network", Note, "probes get lost", "look at its cable", func(f *Facts) {
			f.Agent.Probed = 2
			f.Agent.Network = []api.NetworkFinding{{Note: true, Text: "probes get lost", Remedy: "look at its cable"}}
		}},
		{"bridge netfilter", Note, "packet filter", "bridge-nf-call-iptables=0", func(f *Facts) {
			f.BridgeNetfilter = true
		}},
	} {
		t.Run(c.check, func(t *testing.T) {
			f := soundHost()
			c.spoil(&f)
			var got []Finding
			for _, x := range Examine(f) {
				if x.Level != OK {
					got = append(got, x)
				}
			}
			covered[c.check] = true
			if c.remedy == "" {
				t.Errorf("%s, %q: this case asks for no remedy", c.check, c.text)
			}
			if len(got) != 1 || got[0].Check != c.check || got[0].Level != c.level ||
				!strings.Contains(got[0].Text, c.text) || !strings.Contains(got[0].Remedy, c.remedy) {
				t.Errorf("%s, %q: %+v", c.check, c.text, got)
			}
			if Healthy(got) != (c.level != Wrong) {
				t.Errorf("%s: healthy is %v at level %s", c.check, Healthy(got), c.level)
			}
		})
	}
	for _, c := range checks() {
		if !covered[c.name] && c.name != "namespace" { // which finds no fault
			t.Errorf("no test provokes check %q", c.name)
		}
	}
}

func TestWhatIsUnknownIsNeitherSoundNorWrong(t *testing.T) {
	f := soundHost()
	f.Kernel.TCX, f.Kernel.JIT, f.Kernel.Backlog = false, false, 0
	for _, u := range []Fact{FactTCX, FactJIT, FactBacklog, FactPins, FactMounts, FactAgent, FactConfig} {
		f.Unknown[u] = "run this as root"
	}
	unknown := 0
	found := Examine(f)
	for _, x := range found {
		switch x.Level {
		case Unknown:
			unknown++
			if !strings.Contains(x.Text, "run this as root") {
				t.Errorf("%s does not say why: %s", x.Check, x.Text)
			}
		case OK:
		default:
			t.Errorf("%s: %s", x.Check, x.Text)
		}
	}
	if unknown != 11 || !Healthy(found) {
		t.Errorf("%d checks unknown, healthy: %v", unknown, Healthy(found))
	}
}

func TestMountsAreReadFromTheFirstProcess(t *testing.T) {
	const info = "36 35 98:0 / /run/heddle/bpf rw,nosuid - bpf bpf rw,mode=700\n37 35 0:9 / /run/other rw shared:7 - " +
		"tmpfs tmpfs rw\n"
	for dir, want := range map[string]bool{"/run/heddle/bpf": true, "/run/other": false, "/run/heddle": false} {
		t.Run(dir, func(t *testing.T) {
			if got := mountedAt(info, dir); got != want {
				t.Errorf("%s: %v", dir, got)
			}
		})
	}
}

// TestWhereThereIsNothingNoCheckSaysThatItIsAsItShouldBe examines a host before its first configuration.
func TestWhereThereIsNothingNoCheckSaysThatItIsAsItShouldBe(t *testing.T) {
	f := soundHost()
	f.Uplinks, f.Ports, f.Pins.Agents, f.Config.Empty = nil, nil, nil, true
	f.Agent = Agent{Name: "default", Own: "v1"}
	want := map[string]string{
		"uplinks": notConfigured, "ports": notConfigured, "mtu": noDevices, "other owners": noDevices,
		"offloads": noDevices, "other programs": noDevices, "managers": noDevices,
		"receive backlog": "no port is configured that could fill it", "pins": "no switch is in the kernel",
		"configuration": "/etc/heddle/heddle.yaml has no list of switches: it configures nothing, and an agent keeps " +
			"what was applied last",
	}
	for _, found := range Examine(f) {
		if text, ok := want[found.Check]; ok && (found.Text != text || found.Level != OK) {
			t.Errorf("%s: %s %q", found.Check, found.Level, found.Text)
		}
		delete(want, found.Check)
	}
	if len(want) > 0 {
		t.Errorf("no finding of %v", want)
	}
}
