package host

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heddle/internal/api"
	"heddle/internal/lab/netns"
	"heddle/internal/test/testkit"
)

// lives is how many lives end at a random instant. After each, what survived is looked at through another agent, that
// is killed as well. A soak, which CI runs too, has more.
func lives() int {
	if os.Getenv("HEDDLE_SOAK") != "" {
		return 60
	}
	return 8
}

// mortalGuests has two ports whose VLAN changes from file to file, and a segment that stays, with learned MACs.
const mortalGuests = `
switches:
  - name: lab
    portGroups:
      - {name: web, vlan: {access: %d}, security: {forgedTransmits: accept, macLearning: {enabled: true}}}
      - {name: still, vlan: {access: 7}, security: {forgedTransmits: accept, macLearning: {enabled: true, limit: 1000, ageing: 24h}}}
ports:
  - {name: a, switch: lab, portGroup: web, device: pa, mac: "02:00:00:00:00:0a"}
  - {name: b, switch: lab, portGroup: web, device: pb, mac: "02:00:00:00:00:0b"}
  - {name: k, switch: lab, portGroup: still, device: pk, mac: "02:00:00:00:00:0c"}
`

// mortal is a host whose agent is killed again and again while commands are given to it.
type mortal struct {
	*host
	random   *rand.Rand
	binaries []string // versions of the program that take turns
	files    [2]string
	contents [2]string
	// config is which of the contents may be in force; ports whether a port is connected: yes, no, or either when it is
	// absent.
	config []string
	ports  map[string]bool
	// macs are the learned addresses that have to survive, counts the counters as they were last and at first.
	macs            []string
	counts, counts0 map[string]uint64
}

// attempt repeats a command until it succeeds or the agent is dead; then it may have been carried out or not.
func (m *mortal) attempt(dead *atomic.Bool, args ...string) (succeeded bool) {
	for end := time.Now().Add(patience); ; {
		// A program is started only when there is somebody to talk to: starting costs more than the agent's own start
		// leaves.
		if c, err := net.Dial("unix", api.SocketPath(filepath.Join(m.dir, "run"), m.name)); err == nil {
			c.Close()
			if _, _, status := m.heddle(args...); status == 0 {
				return true
			}
		}
		if dead.Load() {
			return false
		}
		if time.Now().After(end) {
			m.t.Errorf("the agent lives, and does not take heddle %s", strings.Join(args, " "))
			return false
		}
		time.Sleep(5 * time.Millisecond) // the agent does not listen yet
	}
}

// life runs an agent, gives it a file and a port at the same time, and kills it after a while.
func (m *mortal) life(n int) {
	m.t.Helper()
	cmd := m.command("agent")
	if binary := m.someBinary(); binary != "" {
		cmd.Path, cmd.Err = binary, nil
	}
	cmd.Stdout, cmd.Stderr = m.log, m.log
	if err := m.ns.Start(cmd); err != nil {
		m.t.Fatal(err)
	}
	var commands sync.WaitGroup
	var dead atomic.Bool
	var applied, changed bool
	port := fmt.Sprintf("r%d", n%6)
	had, known := m.ports[port]
	change := []string{"port", "connect", port, "--port-group", "web", "--device", "d" + port}
	if had && known {
		change = []string{"port", "disconnect", port}
	}
	commands.Go(func() { applied = m.attempt(&dead, "apply", "-f", m.files[n%2]) })
	commands.Go(func() { changed = m.attempt(&dead, change...) })
	time.Sleep(time.Duration(m.random.Int64N(int64(800 * time.Millisecond)))) // the instant is what is tried
	if err := cmd.Process.Kill(); err != nil {
		m.t.Fatal(err)
	}
	_ = cmd.Wait()
	dead.Store(true)
	commands.Wait()
	m.config = append(m.config, m.contents[n%2])
	if applied {
		m.config = []string{m.contents[n%2]}
	}
	delete(m.ports, port)
	if changed {
		m.ports[port] = !(had && known)
	}
}

// look compares what the agent left on disk with what may be there.
func (m *mortal) look(n int) {
	m.t.Helper()
	b, err := os.ReadFile(filepath.Join(m.dir, "state", m.name, "state.json"))
	if err != nil {
		m.t.Fatal(err)
	}
	var s struct {
		Config struct{ Content string }
		Ports  []struct{ Name string }
	}
	if err := json.Unmarshal(b, &s); err != nil {
		m.t.Fatalf("life %d left a damaged state: %v", n, err)
	}
	if !slices.Contains(m.config, s.Config.Content) {
		m.t.Fatalf("life %d left the configuration\n%s", n, s.Config.Content)
	}
	m.config = []string{s.Config.Content}
	there := map[string]bool{}
	for _, p := range s.Ports {
		there[p.Name] = true
	}
	for port, want := range m.ports {
		if there[port] != want {
			m.t.Fatalf("life %d: port %s connected %v, want %v", n, port, there[port], want)
		}
	}
	for i := range 6 {
		port := fmt.Sprintf("r%d", i)
		m.ports[port] = there[port]
	}
}

func (m *mortal) someBinary() string { return m.binaries[m.random.IntN(len(m.binaries))] }

// survived starts an agent of either version, compares what the kernel and the state file kept with what was there
// before, and kills the agent.
func (m *mortal) survived(n int) {
	m.t.Helper()
	m.binary = m.someBinary()
	m.start()
	if got := m.learnedMACs(); !slices.Equal(got, m.macs) {
		m.t.Fatalf("life %d: %d learned MACs of %d: %s", n, len(got), len(m.macs), cmp.Diff(m.macs, got))
	}
	now := m.counters("a", "b", "k", "c")
	for name, before := range m.counts {
		if now[name] < before {
			m.t.Fatalf("life %d: counter %s went from %d to %d", n, name, before, now[name])
		}
	}
	m.counts = now
	want := []string{"c"}
	for port, connected := range m.ports {
		if connected {
			want = append(want, port)
		}
	}
	slices.Sort(want)
	if got := m.runtimePorts(); !slices.Equal(got, want) {
		m.t.Fatalf("life %d: ports connected by command %q, want %q", n, got, want)
	}
	m.kill(os.Kill)
}

// The agent, of two versions with different tables, is killed at random instants: while it starts, takes over the
// other's tables, puts a file into force, attaches and detaches devices. No packet is lost, what is remembered is whole
// every time, and learned MACs, counters and ports connected by command are what they were after every death.
func TestKilledAtRandomInstantsLosesNoFrame(t *testing.T) {
	testkit.Long(t, "builds another version, and kills agents of both many times")
	testkit.Never(t)
	m := &mortal{binaries: []string{"", grownBinary(t)}, host: newHost(t), ports: map[string]bool{}}
	seed := uint64(time.Now().UnixNano())
	m.random = rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	a, b := m.populate()
	m.kill(os.Kill)
	s := startNumbered(t, a, b, "192.0.2.11")
	for n := range lives() {
		m.life(n)
		m.look(n)
		m.survived(n)
	}
	m.binary = ""
	m.start()
	for port, connected := range m.ports {
		if connected {
			m.awaitPort(port, api.Up)
		}
	}
	frames, before := s.finish(), m.counts0
	after := m.counters("a", "b")
	for _, name := range []string{"a packetsInUnicast", "b packetsOutUnicast"} {
		if n := after[name] - before[name]; n != frames {
			t.Errorf("%s: %d counted of a stream of %d frames", name, n, frames)
		}
	}
	if !pings(a, "192.0.2.11") {
		t.Error("guests do not reach each other after all that")
	}
	t.Logf("%d deaths, half of them at random instants; tables taken over %d times", 2*lives(),
		strings.Count(m.log.String(), "are taken over"))
}

// populate makes the guests and devices, puts the first file into force, has MACs learned, and looks at what has to
// survive.
func (m *mortal) populate() (a, b *netns.NS) {
	m.t.Helper()
	a, b = m.guest("pa", "02:00:00:00:00:0a", "192.0.2.10/24"), m.guest("pb", "02:00:00:00:00:0b", "192.0.2.11/24")
	k := m.guest("pk", "02:00:00:00:00:0c", "192.0.2.12/24")
	m.guest("pc", "02:00:00:00:00:0d", "192.0.2.13/24")
	for i := range 6 {
		m.ip(fmt.Sprintf("link add dr%d type veth peer name er%d", i, i))
		m.ip(fmt.Sprintf("link set er%d up", i))
	}
	for i, vlan := range []int{100, 200} {
		m.contents[i] = fmt.Sprintf(mortalGuests, vlan)
		m.files[i] = m.file(fmt.Sprintf("file%d.yaml", vlan), m.contents[i])
	}
	m.start()
	m.must("apply", "-f", m.files[1])
	m.config = []string{m.contents[1]}
	m.must("port", "connect", "c", "--port-group", "still", "--device", "pc")
	for _, port := range []string{"a", "b", "k", "c"} {
		m.awaitPort(port, api.Up)
	}
	if !pings(a, "192.0.2.11") {
		m.t.Fatal("guests do not reach each other")
	}
	knows(m.t, a, "192.0.2.11", "02:00:00:00:00:0b")
	knows(m.t, b, "192.0.2.10", "02:00:00:00:00:0a")
	const macs = 300
	speaks(m.t, k, macs)
	m.await("MACs are learned", func() bool { m.macs = m.learnedMACs(); return len(m.macs) == macs })
	m.counts = m.counters("a", "b", "k", "c")
	m.counts0 = m.counts
	return a, b
}
