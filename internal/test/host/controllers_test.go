package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/lab/netns"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/realhost"
)

// severalControllers is what the page needs: the three hosts, and two more machines for controllers.
type severalControllers struct {
	*threeHosts
	all   map[string]*realhost.Controller
	where map[string]*netns.NS
}

func newSeveralControllers(t *testing.T) *severalControllers {
	t.Helper()
	m := &severalControllers{threeHosts: newThreeHosts(t), all: map[string]*realhost.Controller{},
		where: map[string]*netns.NS{}}
	m.all["controller1"], m.where["controller1"] = m.controller, m.network
	for n := 2; n <= 3; n++ {
		name := fmt.Sprintf("controller%d", n)
		ns := testkit.NS(t, name)
		run(t, m.network, fmt.Sprintf("ip link add c%d type veth peer name eth0 netns %s", n, ns.Name))
		run(t, m.network, fmt.Sprintf("ip link set c%d master mgmt up", n))
		run(t, ns, "ip link set eth0 up")
		run(t, ns, fmt.Sprintf("ip addr add 192.0.2.%d/24 dev eth0", n))
		m.all[name] = realhost.NewController(t, ns, fmt.Sprintf("192.0.2.%d:7411", n))
		m.all[name].Name, m.where[name] = name, ns
	}
	return m
}

// typed runs a command of the page on a machine and gives what it prints.
func (m *severalControllers) typed(where, command string) string {
	m.t.Helper()
	c := m.all[where]
	words := strings.Fields(strings.ReplaceAll(command, "hc1.…", m.token))
	switch {
	case c == nil:
		return m.threeHosts.typed(where, command)
	case words[0] == "heddle-controller" && strings.HasPrefix(words[1], "--"):
		c.Address = words[2]
		c.Start()
		m.settled(c)
		return ""
	case words[0] == "heddle-controller":
		return m.commanded(c, words[1:])
	case command == "kill %1", command == "kill -9 %1":
		signal := syscall.SIGTERM
		if words[1] == "-9" {
			signal = syscall.SIGKILL
		}
		c.End(signal)
		return ""
	case command == "wait":
		return ""
	case words[0] == "rm":
		if err := os.RemoveAll(c.DataDir()); err != nil {
			m.t.Fatal(err)
		}
		return ""
	case words[0] == "ip":
		return run(m.t, m.where[where], command)
	}
	if strings.HasPrefix(command, "heddle host list") {
		m.settled(c)
	}
	return m.threeHosts.typed(where, command)
}

// commanded runs a command of the controllers' program.
func (m *severalControllers) commanded(c *realhost.Controller, words []string) string {
	m.t.Helper()
	for i, w := range words {
		if w == "heddle.db" {
			words[i] = filepath.Join(m.dir, w)
		}
	}
	out := strings.ReplaceAll(c.Must(words...), c.DataDir(), "/var/lib/heddle-controller")
	if words[0] == "token" {
		m.token = strings.TrimSpace(out)
	}
	return strings.ReplaceAll(out, m.dir+"/", "")
}

// settled waits until all controllers that a controller knows and reaches have a vote, those that do not answer have
// gone from the list, and the hosts are connected.
func (m *severalControllers) settled(c *realhost.Controller) {
	m.t.Helper()
	c.Await("the controllers and the hosts are there", func() bool {
		list, err := c.Controllers(m.t.Context())
		if err != nil {
			return false
		}
		for _, r := range list.Controllers {
			if r.Role == "learner" || r.State == "stale" {
				return false
			}
		}
		restored, err := c.ConfirmRestored(m.t.Context(), api.ConfirmRestored{})
		if err == nil && len(restored.Waiting) > 0 {
			return true // the hosts wait to be confirmed
		}
		hosts, err := c.Hosts(m.t.Context())
		if err != nil || len(hosts.Unreachable) > 0 {
			return false
		}
		for _, h := range hosts.Hosts {
			if h.State == api.HostDisconnected || h.State == api.HostPending {
				return false
			}
		}
		return true
	})
}

// TestThePageOfSeveralControllersShowsWhatItsCommandsPrint runs the page as a reader would.
func TestThePageOfSeveralControllersShowsWhatItsCommandsPrint(t *testing.T) {
	testkit.Long(t, "runs a page with three hosts and three controllers; smoke has as many")
	testkit.Root(t)
	testkit.Tool(t, "ip", "sed")
	text := page(t, "docs/how-to/many-hosts/several-controllers.md")
	_, file, _ := strings.Cut(page(t, "docs/how-to/many-hosts/three-hosts.md"), "```yaml\n")
	file, _, _ = strings.Cut(file, "```")
	m := newSeveralControllers(t)
	if err := os.WriteFile(filepath.Join(m.dir, "fleet.yaml"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	commands := consoles(text)
	if len(commands) < 40 {
		t.Fatalf("the page has %d commands", len(commands))
	}
	for _, s := range commands {
		shows(t, s, m.typed, changing)
	}
}

// shows runs a command of the page, and fails the test unless it prints what the page says, but for what chance
// decides, which plain leaves out. A command that lists controllers or hosts is run until it does: on a slow machine
// one that has just started does not answer in time at first.
func shows(t *testing.T, s typed, run func(where, command string) string, plain func(string) string) {
	t.Helper()
	for i := range s.want {
		s.want[i] = plain(s.want[i])
	}
	lists := s.command == "heddle host list" || s.command == "heddle-controller list"
	for deadline := time.Now().Add(patience); ; time.Sleep(realhost.Poll) {
		why := s.differs(plain(run(s.where, s.command)))
		if why == "" {
			return
		}
		if !lists || time.Now().After(deadline) {
			t.Fatalf("%s# %s: %s", s.where, s.command, why)
		}
	}
}

// changing is a line of the page without what chance decides: who leads, and which controller a host is at.
func changing(text string) string {
	text = strings.ReplaceAll(drawn.ReplaceAllString(text, "~"), "(devel)", "0.1.0")
	return strings.NewReplacer("leader", "voter").Replace(text)
}
