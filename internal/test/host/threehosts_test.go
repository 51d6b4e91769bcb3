package host

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"heddle/internal/api"
	"heddle/internal/lab/netns"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/realhost"
)

// drawn is what a controller draws by chance: tokens, ids, and the name of its cluster.
var drawn = regexp.MustCompile(`\bh[jc]1\.\S+|cluster [a-z2-7]{16}\b|\([a-z2-7]{26}\)`)

// threeHosts is what the page needs: a controller's machine, and three hosts with a guest each.
type threeHosts struct {
	t          *testing.T
	dir        string
	controller *realhost.Controller
	network    *netns.NS
	hosts      map[string]*host
	guests     map[string]*netns.NS
	token      string
}

func newThreeHosts(t *testing.T) *threeHosts {
	t.Helper()
	testkit.Beside(t)
	m := &threeHosts{t: t, dir: t.TempDir(), network: testkit.NS(t, "controller1"), hosts: map[string]*host{},
		guests: map[string]*netns.NS{}}
	for _, bridge := range []string{"net", "mgmt"} {
		run(t, m.network, "ip link add "+bridge+" type bridge")
		run(t, m.network, "ip link set "+bridge+" up")
	}
	run(t, m.network, "ip addr add 192.0.2.1/24 dev mgmt")
	m.controller = realhost.NewController(t, m.network, "192.0.2.1:7411")
	for n := 1; n <= 3; n++ {
		h := newHost(t)
		for bridge, device := range map[string]string{"net": "eno2", "mgmt": "eno1"} {
			port := fmt.Sprintf("%s-%d", device, n)
			h.ip(fmt.Sprintf("link add %s type veth peer name %s netns %s", device, port, m.network.Name))
			run(t, m.network, fmt.Sprintf("ip link set %s master %s up", port, bridge))
			h.ip("link set " + device + " up")
		}
		h.ip(fmt.Sprintf("addr add 192.0.2.1%d/24 dev eno1", n))
		m.guests[fmt.Sprintf("vm%d", n)] = h.guest("tap0", fmt.Sprintf("02:00:00:00:00:0%d", n),
			fmt.Sprintf("198.51.100.%d/24", n))
		h.ip("link set tap0 up")
		h.start()
		m.hosts[fmt.Sprintf("esx%d", n)] = h
	}
	return m
}

// typed runs a command of the page on a machine and gives what it prints.
func (m *threeHosts) typed(where, command string) string {
	m.t.Helper()
	words := strings.Fields(strings.ReplaceAll(command, "hj1.…", m.token))
	switch h, guest := m.hosts[where], m.guests[where]; {
	case h != nil && command == "systemctl stop heddle":
		h.kill(syscall.SIGTERM)
		m.controller.Await("it is away", func() bool { return m.controller.StateOf(where) == api.HostDisconnected })
		return ""
	case h != nil && words[0] != "heddle":
		return run(m.t, h.ns, command)
	case h != nil:
		if strings.HasPrefix(command, "heddle host join ") { // the namespaces share the machine's name
			words = append(words, "--name", where)
		}
		out := h.must(words[1:]...)
		if strings.HasPrefix(command, "heddle host join ") {
			m.controller.Await(where+" is up", func() bool { return m.controller.StateOf(where) == api.HostUp })
		}
		if strings.HasPrefix(command, "heddle port connect ") {
			h.awaitPort(words[3], api.Up)
			h.await("the uplink is used", func() bool { return strings.Contains(h.must("port", "list"), "uplink1") })
			m.controller.Await("the port is reported, if a controller is there", func() bool {
				list, err := m.controller.Ports(m.t.Context(), api.FleetPortQuery{Host: where})
				return err != nil || slices.ContainsFunc(list, func(p api.FleetPort) bool { return p.Name == words[3] })
			})
		}
		return out
	case guest != nil:
		return run(m.t, guest, command)
	case where == "controller1":
		return m.atController(command, words)
	}
	m.t.Fatalf("%s: there is no machine %q", command, where)
	return ""
}

// atController runs a command on the controller's machine. The shell's jobs are the test's.
func (m *threeHosts) atController(command string, words []string) string {
	m.t.Helper()
	switch {
	case words[0] == "heddle-controller":
		m.controller.Start()
		for name := range m.hosts {
			m.controller.Await(name+" is back", func() bool {
				state := m.controller.StateOf(name)
				return state == api.HostUp || state == ""
			})
		}
		return ""
	case command == "kill %1":
		m.controller.End(syscall.SIGTERM)
		return ""
	case command == "wait", words[0] == "export": // each command has it in its environment
		return ""
	}
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir = m.dir
	cmd.Env = append(os.Environ(), "HEDDLE_CONTROLLER="+m.controller.Socket())
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := m.network.Start(cmd); err != nil {
		m.t.Fatal(err)
	}
	_ = cmd.Wait() // one command is refused on purpose, and what it prints is compared
	said := strings.ReplaceAll(out.String(), m.controller.Socket(), "/run/heddle-controller/api.sock")
	if strings.HasPrefix(command, "heddle host token") {
		m.token = strings.TrimSpace(said)
	}
	return said
}

// What is wrong in a fleet's commands is said at once, with what to do; completion knows the hosts of the cluster.
func TestCommandsOfAFleet(t *testing.T) {
	m := newThreeHosts(t)
	m.controller.Start()
	m.token = strings.TrimSpace(m.atController("heddle host token", []string{"heddle"}))
	m.typed("esx1", "heddle host join 192.0.2.1:7411 --token hj1.…")
	fault := "switches: [{name: dvs, kind: standard}]\nhosts: [{name: esx1, switches: [{name: nope}]}]\n"
	if err := os.WriteFile(filepath.Join(m.dir, "bad.yaml"), []byte(fault), 0o600); err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]string{
		"heddle host token --label 'rack=a!'":    "\"rack=a!\" is no label that a template can ask for",
		"heddle host token --label 'a b!=c'":     "\"a b!=c\" is no label that a template can ask for",
		"heddle host token --lasts 0":            "--lasts 0s: a token can be used for some time, such as 1h",
		"heddle definition apply -f bad.yaml":    "bad.yaml:2:40: hosts[esx1].switches[nope].name: nope: there is no",
		"heddle definition apply -f none.yaml":   "there is no file none.yaml",
		"heddle definition apply":                "say which file, with -f FILE",
		"heddle host remove esx9":                "the cluster has no host \"esx9\"",
		"heddle host list --controller /nothing": "no controller answers at /nothing: start heddle-controller there",
		"heddle host list --controller c1:7411":  "give the path of a controller's socket",
		"heddle __complete host remove ''":       "esx1\n:4\n",
		"heddle __complete port list --host ''":  "esx1\n:4\n",
		"heddle __complete host join ''":         ":4\n",
		"heddle __complete host join c1:7411 ''": ":4\n",
	} {
		t.Run(command, func(t *testing.T) {
			if out := m.atController(command, strings.Fields(command)); !strings.Contains(out, want) {
				t.Errorf("it prints\n%s\nwant\n%s", out, want)
			}
		})
	}
}

// TestThePageOfThreeHostsShowsWhatItsCommandsPrint runs the page as a reader would, from the first command to the last.
func TestThePageOfThreeHostsShowsWhatItsCommandsPrint(t *testing.T) {
	testkit.Long(t, "runs a page with three hosts; TestCommandsOfAFleet has as many")
	testkit.Root(t)
	testkit.Tool(t, "ip", "ping", "sed")
	text := page(t, "docs/how-to/many-hosts/three-hosts.md")
	_, file, _ := strings.Cut(text, "```yaml\n")
	file, _, _ = strings.Cut(file, "```")
	m := newThreeHosts(t)
	if err := os.WriteFile(filepath.Join(m.dir, "fleet.yaml"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	commands := consoles(text)
	if len(commands) < 25 {
		t.Fatalf("the page has %d commands", len(commands))
	}
	for _, s := range commands {
		out := m.typed(s.where, s.command)
		for i := range s.want {
			s.want[i] = drawn.ReplaceAllString(s.want[i], "~")
		}
		out = strings.ReplaceAll(drawn.ReplaceAllString(out, "~"), "(devel)", "0.1.0")
		if why := s.differs(out); why != "" {
			t.Fatalf("%s# %s: %s", s.where, s.command, why)
		}
	}
}

// TestThePageOfAllHostsShowsWhatItsCommandsPrint begins where the page of three hosts has connected guests.
func TestThePageOfAllHostsShowsWhatItsCommandsPrint(t *testing.T) {
	testkit.Long(t, "runs a page with three hosts; TestCommandsOfAFleet has as many")
	testkit.Root(t)
	testkit.Tool(t, "ip")
	_, file, _ := strings.Cut(page(t, "docs/how-to/many-hosts/three-hosts.md"), "```yaml\n")
	file, _, _ = strings.Cut(file, "```")
	m := newThreeHosts(t)
	m.controller.Start()
	for n, name := range []string{"esx1", "esx2", "esx3"} {
		m.token = strings.TrimSpace(m.typed("controller1", "heddle host token --label site=lab"))
		m.typed(name, "heddle host join 192.0.2.1:7411 --token hj1.…")
		if n == 2 {
			m.controller.Define(file)
		}
	}
	for n, group := range []string{"web", "web", "db"} {
		m.typed(fmt.Sprintf("esx%d", n+1), fmt.Sprintf("heddle port connect vm%d/eth0 --switch dvs --port-group %s "+
			"--device tap0", n+1, group))
	}
	commands := consoles(page(t, "docs/how-to/many-hosts/look-at-all-hosts.md"))
	if len(commands) < 10 {
		t.Fatalf("the page has %d commands", len(commands))
	}
	for _, s := range commands {
		if why := s.differs(m.typed(s.where, s.command)); why != "" {
			t.Fatalf("%s# %s: %s", s.where, s.command, why)
		}
	}
}

// TestThePageOfHostPortsShowsWhatItsCommandsPrint begins with three hosts that have joined.
func TestThePageOfHostPortsShowsWhatItsCommandsPrint(t *testing.T) {
	testkit.Long(t, "runs a page with three hosts; smoke has host ports of a definition")
	testkit.Root(t)
	testkit.Tool(t, "ip", "ping", "sed")
	text := page(t, "docs/how-to/many-hosts/host-ports-of-a-fleet.md")
	_, file, _ := strings.Cut(text, "```yaml\n")
	file, _, _ = strings.Cut(file, "```")
	m := newThreeHosts(t)
	if err := os.WriteFile(filepath.Join(m.dir, "fleet.yaml"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	m.controller.Start()
	for _, name := range []string{"esx1", "esx2", "esx3"} {
		m.token = strings.TrimSpace(m.typed("controller1", "heddle host token --label site=lab"))
		m.typed(name, "heddle host join 192.0.2.1:7411 --token hj1.…")
	}
	commands := consoles(text)
	if len(commands) < 6 {
		t.Fatalf("the page has %d commands", len(commands))
	}
	for _, s := range commands {
		if strings.HasPrefix(s.command, "heddle port list") {
			m.hosts[s.where].awaitPort("vmk1", api.Up)
			m.hosts[s.where].await("the uplink is used", func() bool {
				return strings.Contains(m.hosts[s.where].must("port", "list"), "uplink1")
			})
		}
		if why := s.differs(m.typed(s.where, s.command)); why != "" {
			t.Fatalf("%s# %s: %s", s.where, s.command, why)
		}
	}
	for _, name := range []string{"esx1", "esx2", "esx3"} {
		if out := m.typed(name, "heddle host show"); !strings.Contains(out, "vmk1 203.0.113.") {
			t.Errorf("heddle host show on %s says\n%s", name, out)
		}
	}
}
