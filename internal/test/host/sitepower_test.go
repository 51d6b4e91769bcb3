package host

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"heddle/internal/api"
	"heddle/internal/lab/netns"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/realhost"
)

// sitePower is what the page needs: three hosts, and three controllers that are VMs on them.
type sitePower struct {
	*severalControllers
	waits int // controllers that start when their VM is connected
}

// newSitePower has the controllers' machines on the hosts' management network, which is one with that of the switch.
func newSitePower(t *testing.T) *sitePower {
	t.Helper()
	m := &sitePower{severalControllers: &severalControllers{threeHosts: newThreeHosts(t),
		all: map[string]*realhost.Controller{}, where: map[string]*netns.NS{}}}
	run(t, m.network, "ip addr del 192.0.2.1/24 dev mgmt")
	run(t, m.network, "ip link add trunk0 type veth peer name trunk1")
	run(t, m.network, "ip link set trunk0 master net up")
	run(t, m.network, "ip link set trunk1 master mgmt up")
	for n := 1; n <= 3; n++ {
		name := fmt.Sprintf("controller%d", n)
		ns := testkit.NS(t, name)
		m.where[name] = ns
		run(t, m.network, fmt.Sprintf("ip link add c%d type veth peer name eth0 address %s netns %s", n, ctlMAC(n),
			ns.Name))
		run(t, m.network, fmt.Sprintf("ip link set c%d master mgmt up", n))
		m.address(n)
		m.all[name] = realhost.NewController(t, ns, fmt.Sprintf("192.0.2.%d:7411", n))
		m.all[name].Name = name
		m.all[name].OwnDisk() // the page's status finds nothing wrong, however full this machine's is
		m.all[name].Start()
		if n > 1 {
			m.all[name].Joins(m.all["controller1"])
		}
	}
	m.controller = m.all["controller1"]
	return m
}

var someController = regexp.MustCompile(`controller\d`)

func ctlMAC(n int) string { return fmt.Sprintf("02:00:00:00:0c:0%d", n) }

// address sets up the adapter of a controller's machine.
func (m *sitePower) address(n int) {
	m.t.Helper()
	ns := m.where[fmt.Sprintf("controller%d", n)]
	run(m.t, ns, "ip link set eth0 up")
	run(m.t, ns, fmt.Sprintf("ip addr add 192.0.2.%d/24 dev eth0", n))
}

// becomesVM plugs a controller's machine into a host.
func (m *sitePower) becomesVM(n int, host string) {
	m.t.Helper()
	m.hosts[host].ip(fmt.Sprintf("link add tap%d type veth peer name eth0 address %s netns %s", n, ctlMAC(n),
		m.where[fmt.Sprintf("controller%d", n)].Name))
	m.hosts[host].ip(fmt.Sprintf("link set tap%d up", n))
	m.address(n)
}

// ready is the site before it loses its power.
func (m *sitePower) ready(definition string) {
	m.t.Helper()
	m.controller.Define(definition)
	for n := 1; n <= 3; n++ {
		host := fmt.Sprintf("esx%d", n)
		m.token = strings.TrimSpace(m.commandAtController("heddle host token --label site=lab"))
		m.threeHosts.typed(host, "heddle host join 192.0.2.1:7411 --token hj1.…")
		m.threeHosts.typed(host, fmt.Sprintf("heddle port connect vm%d/eth0 --switch dvs --port-group web "+
			"--device tap0", n))
	}
	for n := 1; n <= 3; n++ {
		host := fmt.Sprintf("esx%d", n)
		run(m.t, m.network, fmt.Sprintf("ip link del c%d", n))
		m.becomesVM(n, host)
		m.hosts[host].must(strings.Fields(fmt.Sprintf("port connect ctl%d/eth0 --switch dvs --port-group control "+
			"--device tap%d --vm-uuid 6f9619ff-8b86-d011-b42d-00c04fc9640%d --adapter net0", n, n, n))...)
	}
	m.controller.Await("it is known where the controllers are", func() bool {
		st, err := m.controller.Status(m.t.Context())
		if err != nil {
			return false
		}
		for i, at := range st.Controllers {
			if at.Host != fmt.Sprintf("esx%d", i+1) {
				return false
			}
		}
		return true
	})
}

func (m *sitePower) commandAtController(command string) string {
	return m.atController(command, strings.Fields(command))
}

// lost takes the power of all machines, and boots the hosts.
func (m *sitePower) lost() {
	m.t.Helper()
	for _, h := range m.hosts {
		h.kill(syscall.SIGKILL)
	}
	for _, c := range m.all {
		c.End(syscall.SIGKILL)
	}
	for n := 1; n <= 3; n++ {
		h := m.hosts[fmt.Sprintf("esx%d", n)]
		h.ip(fmt.Sprintf("link del tap%d", n))
		h.ip("link del tap0")
		realhost.ForgetBoot(m.t, h.dir, h.name)
	}
	m.waits = len(m.all)
	for n := 1; n <= 3; n++ {
		h := m.hosts[fmt.Sprintf("esx%d", n)]
		m.guests[fmt.Sprintf("vm%d", n)] = h.guest("tap0", fmt.Sprintf("02:00:00:00:00:0%d", n),
			fmt.Sprintf("198.51.100.%d/24", n))
		h.ip("link set tap0 up")
		h.start()
		h.awaitPort(fmt.Sprintf("vm%d/eth0", n), api.Up)
		h.await("the uplink is used", func() bool { return strings.Contains(h.must("port", "list"), "uplink1") })
	}
}

// typed runs a command of the page; the VM of a controller starts when its port is connected.
func (m *sitePower) typed(where, command string) string {
	m.t.Helper()
	var n int
	if _, err := fmt.Sscanf(command, "heddle port connect ctl%d/eth0", &n); err != nil {
		return m.severalControllers.typed(where, command)
	}
	m.becomesVM(n, where)
	out := m.hosts[where].must(strings.Fields(command)[1:]...)
	m.all[fmt.Sprintf("controller%d", n)].Launch()
	if m.waits--; m.waits == 0 {
		for _, c := range m.all {
			c.Answers()
		}
		m.settled(m.controller)
	}
	return out
}

// TestThePageOfASitesPowerLossShowsWhatItsCommandsPrint runs the page as a reader would; between its first commands and
// the others the power is lost.
func TestThePageOfASitesPowerLossShowsWhatItsCommandsPrint(t *testing.T) {
	testkit.Long(t, "runs a page with three hosts and three controllers")
	testkit.Root(t)
	testkit.Tool(t, "ip", "ping")
	text := page(t, "docs/how-to/many-hosts/site-power-loss.md")
	_, file, _ := strings.Cut(text, "```yaml\n")
	file, _, _ = strings.Cut(file, "```")
	m := newSitePower(t)
	if err := os.WriteFile(filepath.Join(m.dir, "fleet.yaml"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	m.ready(file)
	before, after, _ := strings.Cut(text, "## After the power is back")
	for i, commands := range [][]typed{consoles(before), consoles(after)} {
		if len(commands) < 1+7*i {
			t.Fatalf("part %d of the page has no command", i+1)
		}
		if i == 1 {
			m.lost()
		}
		for _, s := range commands {
			plain := changing
			if s.command == "heddle host list" { // chance decides which controller a host is at
				plain = func(text string) string { return someController.ReplaceAllString(changing(text), "~") }
			}
			shows(t, s, m.typed, plain)
		}
	}
}
