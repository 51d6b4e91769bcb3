package packaging

import (
	"encoding/json"
	"strings"
	"testing"

	"heddle/internal/test/testkit"
)

// Configurations of the guest's life: its card as an uplink.
const (
	uplinkAlone = `switches:
  - {name: lab, uplinks: [{name: up1, device: ens2}], portGroups: [{name: m}]}
`
	// A fault that an editor leaves.
	withAFault = `switches:
  - {name: lab, kinnd: distributed, uplinks: [{name: up1, device: ens2}], portGroups: [{name: m}]}
`
)

// A host keeps its network: through a reboot, through the upgrade of the package over a file that has a fault by then,
// and through a power cut just after a change that was acknowledged.
func TestS183_ADebianKeepsItsNetwork(t *testing.T) {
	t.Parallel()
	testkit.Long(t, "it boots an emulated Debian three times; TestUpgradeRemoveAndPurge has the package's life on "+
		"this kernel")
	dir := packages(t)
	testkit.Weigh(t, 2)
	g := newDebian(t, dir)
	g.start()
	g.sh("cd /root; tar xf /dev/vdb; apt-get install -y ./heddle_" + oldVersion + "_amd64.deb\n" +
		"systemctl is-active heddle")

	declared := g.adopts()
	g.reloads(declared)
	g.reboots()
	g.kept("after a reboot", "192.0.2.10")

	g.upgradesOverAFault(declared)
	g.kept("after an upgrade", "192.0.2.10")

	// The address goes from the port that leads to the host: the change is put on trial, and stays.
	changed := strings.Replace(declared, "192.0.2.10/24", "192.0.2.20/24", 1)
	g.write("/root/changed.yaml", changed)
	out := g.sh("heddle apply -f /root/changed.yaml")
	g.cut()
	if !strings.Contains(out, "it stays") {
		t.Errorf("the change was not put on trial:\n%s", out)
	}
	g.start()
	g.kept("after a power cut", "192.0.2.20")
}

func (g *debianGuest) write(path, text string) {
	g.t.Helper()
	g.sh("cat >" + path + " <<'END'\n" + text + "END")
}

// adopts moves the host's addresses to a host port as the page says it, and is the file that keeps them there.
func (g *debianGuest) adopts() (file string) {
	g.t.Helper()
	g.write("/etc/heddle/heddle.yaml", uplinkAlone)
	if out := g.sh("systemctl reload heddle; heddle status"); !strings.Contains(out, "lab") {
		g.t.Errorf("status does not show the switch just after the reload:\n%s", out)
	}
	var adopted struct{ Declaration string }
	text := g.sh("heddle host-port adopt ens2 --force >/dev/null 2>&1; heddle host-port confirm -o json")
	if err := json.Unmarshal([]byte(text), &adopted); err != nil ||
		!strings.Contains(adopted.Declaration, "gateway: 192.0.2.1") {
		g.t.Fatalf("the port that keeps the addresses: %v, %s", err, text)
	}
	file = uplinkAlone + adopted.Declaration
	g.write("/etc/heddle/heddle.yaml", file)
	g.write("/etc/network/interfaces", `auto lo
iface lo inet loopback
auto ens2
iface ens2 inet manual
auto vmk0
iface vmk0 inet manual
	up ip route replace 198.51.100.0/24 via 192.0.2.1 dev vmk0
`)
	return file
}

// reloads shows that a reload says what is wrong with the file, and in the journal with a priority.
func (g *debianGuest) reloads(file string) {
	g.t.Helper()
	g.write("/etc/heddle/heddle.yaml", withAFault)
	if out, status := g.try("systemctl reload heddle"); status == 0 {
		g.t.Errorf("a reload of a file with a fault succeeds: %s", out)
	}
	if log := g.sh("systemctl is-active heddle; journalctl -b -u heddle -p warning -o cat"); !strings.Contains(log,
		"kinnd") {
		g.t.Errorf("the journal has no warning of the fault:\n%s", log)
	}
	g.write("/etc/heddle/heddle.yaml", file)
	g.sh("systemctl reload heddle")
}

// upgradesOverAFault installs the next version while the file has a fault, and corrects it.
func (g *debianGuest) upgradesOverAFault(file string) {
	g.t.Helper()
	g.write("/etc/heddle/heddle.yaml", withAFault)
	out := g.sh("apt-get install -y /root/heddle_" + newVersion + "_amd64.deb </dev/null")
	if !strings.Contains(out, "/etc/heddle/heddle.yaml has faults") || !strings.Contains(out, "kinnd: unknown field") {
		g.t.Errorf("apt does not say what is wrong with the file:\n%s", out)
	}
	if out := g.sh("systemctl is-active heddle; heddle version"); !strings.Contains(out, newVersion) {
		g.t.Errorf("after the upgrade: %s", out)
	}
	g.write("/etc/heddle/heddle.yaml", file)
	g.sh("systemctl reload heddle")
}

// kept holds the host's network against what it was: address, routes and units.
func (g *debianGuest) kept(when, address string) {
	g.t.Helper()
	if !g.answers(address) {
		g.t.Errorf("%s the host does not answer at %s", when, address)
	}
	out := g.sh("ip -4 route; ip -br addr; systemctl is-failed heddle networking || true; heddle status || true")
	for _, want := range []string{"default via 192.0.2.1 dev vmk0", "198.51.100.0/24 via 192.0.2.1 dev vmk0",
		address + "/24"} {
		if !strings.Contains(out, want) {
			g.t.Errorf("%s the host lacks %q:\n%s", when, want, out)
		}
	}
	if strings.Contains(out, "failed") {
		g.t.Errorf("%s a unit has failed:\n%s", when, out)
	}
}
