package main

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

	"heddle/internal/api"
)

// deaths is how often the agent is killed; a soak, which CI runs as well, kills it more often.
func deaths() int {
	if os.Getenv("HEDDLE_SOAK") != "" {
		return 120
	}
	return 12
}

// mortal is a host whose agent is killed again and again while commands are given to it.
type mortal struct {
	*host
	random   *rand.Rand
	binaries []string // versions of the program that take turns
	files    [2]string
	contents [2]string
	// config is which of the contents may be in force; ports whether a port is connected: yes, no, or either when it is absent.
	config []string
	ports  map[string]bool
}

// attempt gives a command until it succeeds or the agent is dead; then it may have been carried out or not.
func (m *mortal) attempt(dead *atomic.Bool, args ...string) (succeeded bool) {
	for {
		// A program is started only when there is somebody to talk to: starting costs more than the agent's own start leaves.
		if c, err := net.Dial("unix", api.SocketPath(filepath.Join(m.dir, "run"), m.name)); err == nil {
			c.Close()
			if _, _, status := m.heddle(args...); status == 0 {
				return true
			}
		}
		if dead.Load() {
			return false
		}
		time.Sleep(5 * time.Millisecond) // the agent does not listen yet
	}
}

// life runs an agent, gives it a file and a port at the same time, and kills it after a while.
func (m *mortal) life(n int) {
	m.t.Helper()
	cmd := m.command("agent")
	if binary := m.binaries[m.random.IntN(len(m.binaries))]; binary != "" {
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

// The agent, of two versions with different tables, is killed at random instants: while it starts, takes over the other's tables,
// puts a file into force, attaches and detaches devices. No packet is lost, and what is remembered is whole every time.
func TestKilledAtRandomInstantsLosesNoFrame(t *testing.T) {
	m := &mortal{binaries: []string{"", grownBinary(t)}, host: newHost(t), ports: map[string]bool{}}
	seed := uint64(time.Now().UnixNano())
	m.random = rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	a, b := m.guest("pa", "02:00:00:00:00:0a", "192.0.2.10/24"), m.guest("pb", "02:00:00:00:00:0b", "192.0.2.11/24")
	for i := range 6 {
		m.ip(fmt.Sprintf("link add dr%d type veth peer name er%d", i, i))
		m.ip(fmt.Sprintf("link set er%d up", i))
	}
	for i, vlan := range []string{"100", "200"} {
		m.contents[i] = strings.ReplaceAll(learningGuests, "100", vlan)
		m.files[i] = m.file("file"+vlan+".yaml", m.contents[i])
	}
	m.start()
	m.must("apply", "-f", m.files[1])
	m.config = []string{m.contents[1]}
	m.awaitPort("a", api.Up)
	m.awaitPort("b", api.Up)
	if !pings(a, "192.0.2.11") {
		t.Fatal("guests do not reach each other")
	}
	m.kill(os.Kill)
	s := startNumbered(t, a, b, "192.0.2.11")
	for n := range deaths() {
		m.life(n)
		m.look(n)
	}
	m.start()
	for port, connected := range m.ports {
		if connected {
			m.awaitPort(port, api.Up)
		}
	}
	if !pings(a, "192.0.2.11") {
		t.Error("guests do not reach each other after all that")
	}
	s.finish()
	t.Logf("%d deaths; tables taken over %d times", deaths(), strings.Count(m.log.String(), "are taken over"))
}
