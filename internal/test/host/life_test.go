package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heddle/internal/api"
	"heddle/internal/lab/netns"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/cable"
)

// stream is a numbered stream of datagrams between two namespaces.
type stream struct {
	sent, received atomic.Uint64
	stop           chan struct{}
	done           chan error
	in             *net.UDPConn
}

// startStream sends a numbered datagram every half millisecond until finish is called.
func startStream(t *testing.T, from, to *netns.NS, address string) *stream {
	t.Helper()
	s := &stream{stop: make(chan struct{}), done: make(chan error, 2)}
	var out net.Conn
	err := to.Do(func() (err error) {
		s.in, err = net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(address)})
		return err
	})
	if err == nil {
		testkit.Room(t, s.in)
		err = from.Do(func() (err error) { out, err = net.Dial("udp", s.in.LocalAddr().String()); return err })
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() { s.done <- s.send(out) }()
	go func() { s.done <- s.receive() }()
	return s
}

func (s *stream) send(c net.Conn) error {
	defer c.Close()
	if err := cable.Stay(); err != nil {
		return err
	}
	tick := time.NewTicker(500 * time.Microsecond)
	defer tick.Stop()
	var b [8]byte
	for {
		select {
		case <-s.stop:
			return nil
		case <-tick.C:
			binary.BigEndian.PutUint64(b[:], s.sent.Load())
			if _, err := c.Write(b[:]); err != nil {
				return err
			}
			s.sent.Add(1)
		}
	}
}

func (s *stream) receive() error {
	b := make([]byte, 16)
	for {
		n, _, err := s.in.ReadFrom(b)
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		if got := binary.BigEndian.Uint64(b[:n]); got != s.received.Load() {
			return fmt.Errorf("datagram %d came where %d was due", got, s.received.Load())
		}
		s.received.Add(1)
	}
}

// finish stops the sender, waits for what is under way, and fails the test when one was lost, doubled or out of order.
func (s *stream) finish(t *testing.T) {
	t.Helper()
	close(s.stop)
	if err := <-s.done; err != nil {
		t.Error(err)
	}
	deadline := time.Now().Add(time.Minute)
	for s.received.Load() < s.sent.Load() && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	s.in.Close()
	if err := <-s.done; err != nil {
		t.Error(err)
	}
	if s.sent.Load() == 0 || s.received.Load() != s.sent.Load() {
		t.Errorf("%d sent, %d received", s.sent.Load(), s.received.Load())
	}
	t.Logf("%d datagrams, none lost", s.sent.Load())
}

const twoGuests = `
switches:
  - name: lab
    portGroups:
      - {name: web, vlan: {access: 100}}
ports:
  - {name: a, switch: lab, portGroup: web, device: pa, mac: "02:00:00:00:00:0a"}
  - {name: b, switch: lab, portGroup: web, device: pb, mac: "02:00:00:00:00:0b"}
`

// twoVMs starts an agent with two guests that know each other.
func twoVMs(t *testing.T) (h *host, file string, a, b *netns.NS) {
	h = newHost(t)
	file = h.file("heddle.yaml", twoGuests)
	a, b = h.guest("pa", "02:00:00:00:00:0a", "192.0.2.10/24"), h.guest("pb", "02:00:00:00:00:0b", "192.0.2.11/24")
	h.start("--config", file)
	h.awaitPort("a", api.Up)
	h.awaitPort("b", api.Up)
	if !pings(a, "192.0.2.11") {
		t.Fatal("guests do not reach each other")
	}
	return h, file, a, b
}

func TestRestartLosesNoFrame(t *testing.T) {
	testkit.Long(t, "streams over many restarts; TestRunTimePortSurvivesRestartAndApply has one")
	testkit.Never(t)
	h, file, a, b := twoVMs(t)
	s := startStream(t, a, b, "192.0.2.11")
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL, syscall.SIGINT, syscall.SIGKILL} {
		sent := s.sent.Load()
		h.kill(sig)
		h.await("traffic without an agent", func() bool { return s.sent.Load() > sent+100 })
		h.start("--config", file)
		h.awaitPort("b", api.Up)
	}
	s.finish(t)
}

func TestReloadAndApplyLoseNoFrameOfPortsTheyDoNotTouch(t *testing.T) {
	testkit.Long(t, "streams while files are applied")
	testkit.Never(t)
	h, file, a, b := twoVMs(t)
	s := startStream(t, a, b, "192.0.2.11")
	h.must("port", "connect", "c", "--port-group", "web")
	h.file("heddle.yaml", strings.Replace(twoGuests, "switches:", "switches:\n  - {name: second, portGroups: [{name: "+
		"x}]}", 1))
	if err := h.agent.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	h.await("reload", func() bool { return strings.Contains(h.must("switch", "list"), "second") })
	h.must("apply", "-f", h.file("more.yaml", twoGuests+"  - {name: vmk1, switch: lab, portGroup: web, role: host}\n"))
	h.must("apply", "-f", file)
	h.must("port", "disconnect", "c")
	s.finish(t)
}

func TestApplyOutlivesTheAgentUntilTheFileIsEdited(t *testing.T) {
	h := newHost(t)
	file := h.file("heddle.yaml", twoGuests)
	h.start("--config", file)
	h.must("apply", "-f", h.file("other.yaml", strings.ReplaceAll(twoGuests, "lab", "applied")))
	h.kill(syscall.SIGTERM)
	h.start("--config", file)
	if out := h.must("switch", "list"); !strings.Contains(out, "applied") {
		t.Errorf("a restart took an apply back:\n%s", out)
	}
	h.file("heddle.yaml", strings.ReplaceAll(twoGuests, "lab", "early"))
	h.must("apply", "-f", filepath.Join(h.dir, "other.yaml"))
	h.kill(syscall.SIGTERM)
	h.start("--config", file)
	if out := h.must("switch", "list"); !strings.Contains(out, "applied") {
		t.Errorf("an edit from before the apply counts:\n%s", out)
	}
	h.kill(syscall.SIGTERM)
	h.file("heddle.yaml", strings.ReplaceAll(twoGuests, "lab", "edited"))
	h.start("--config", file)
	if out := h.must("switch", "list"); !strings.Contains(out, "edited") {
		t.Errorf("an edited file does not count:\n%s", out)
	}
}

// snapshot is everything of a host that Heddle may change.
func snapshot(t *testing.T, ns *netns.NS) string {
	t.Helper()
	links := run(t, ns, "ip -d -o link") + run(t, ns, "ip -o addr")
	// Carrier, operational state and link-local addresses follow with a delay of the kernel's own, and a device that
	// was up once keeps its queueing discipline; flags and properties are what is compared.
	return regexp.MustCompile(
		`state \S+|,LOWER_UP|NO-CARRIER,|M-DOWN|qdisc \S+|\d+: \S+ +inet6 fe80.*\n`).ReplaceAllString(links, "")
}

func TestDownLeavesNothing(t *testing.T) {
	for _, how := range []string{"agent running", "agent stopped", "agent killed"} {
		t.Run(how, func(t *testing.T) {
			h := newHost(t)
			far := h.guest("up1", "02:00:00:00:00:f1", "198.51.100.1/24")
			h.ip("link set up1 up")
			h.ip("link set up1 promisc off")
			h.guest("up2", "02:00:00:00:00:f2", "198.51.100.2/24")
			h.ip("link set up2 promisc on")
			h.guest("pa", "02:00:00:00:00:0a", "192.0.2.10/24")
			run(t, far, "ip link set eth0 up")
			before := snapshot(t, h.ns)
			h.start("--config", h.file("heddle.yaml", strings.Replace(twoGuests, "name: lab", "name: lab\n    "+
				"uplinks: [{name: u1, device: up1}, {name: u2, device: up2}]", 1)+
				"  - {name: vmk0, switch: lab, portGroup: web, role: host, addresses: [192.0.2.1/24]}\n"))
			h.awaitPort("a", api.Up)
			during := snapshot(t, h.ns)
			if !strings.Contains(during, "vmk0") || strings.Count(during, "PROMISC") != 2 {
				t.Errorf("in service:\n%s", during)
			}
			switch how {
			case "agent stopped":
				h.kill(syscall.SIGTERM)
			case "agent killed":
				h.kill(syscall.SIGKILL)
			}
			h.must("down")
			if after := snapshot(t, h.ns); after != before {
				t.Errorf("not as before: %s", cmp.Diff(strings.Split(before, "\n"), strings.Split(after, "\n")))
			}
			if _, err := os.Stat(filepath.Join(h.dir, "run", "bpf")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the bpf file system is left: %v", err)
			}
			h.must("down")
		})
	}
}

func TestKilledAtAnyInstantAndStartedAgain(t *testing.T) {
	testkit.Long(t, "kills agents at many instants; TestRunTimePortSurvivesRestartAndApply has a restart")
	testkit.Never(t)
	h := newHost(t)
	h.guest("up1", "02:00:00:00:00:f1", "198.51.100.1/24")
	a := h.guest("pa", "02:00:00:00:00:0a", "192.0.2.10/24")
	before := snapshot(t, h.ns)
	withHost := strings.Replace(twoGuests, "name: lab", "name: lab\n    uplinks: [{name: u1, device: up1}]", 1) +
		"  - {name: vmk0, switch: lab, portGroup: web, role: host, addresses: [192.0.2.1/24]}\n"
	files := []string{h.file("with.yaml", withHost), h.file("without.yaml", twoGuests)}
	for i := range 16 {
		cmd := h.command("agent", "--config", files[i%2])
		cmd.Stdout, cmd.Stderr = h.log, h.log
		if err := h.ns.Start(cmd); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(i*9) * time.Millisecond) // the instant is what is tried
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	h.start("--config", files[0])
	h.awaitPort("a", api.Up)
	h.awaitPort("vmk0", api.Up)
	if !pings(a, "192.0.2.1") {
		t.Error("no traffic after all that")
	}
	h.kill(syscall.SIGKILL)
	h.must("down")
	if after := snapshot(t, h.ns); after != before {
		t.Errorf("not as before: %s", cmp.Diff(strings.Split(before, "\n"), strings.Split(after, "\n")))
	}
}

func TestDownFindsTheDevicesInTheirNamespace(t *testing.T) {
	h := newHost(t)
	h.guest("pa", "02:00:00:00:00:0a", "192.0.2.10/24")
	before := snapshot(t, h.ns)
	h.start("--config", h.file("heddle.yaml", twoGuests+"  - {name: vmk0, switch: lab, portGroup: web, role: host}\n"))
	h.awaitPort("a", api.Up)
	h.kill(syscall.SIGKILL)
	elsewhere := testkit.NS(t, "elsewhere")
	home := h.ns
	h.ns = elsewhere
	if _, errs, status := h.heddle("agent"); status != 1 || !strings.Contains(errs, home.Name) {
		t.Errorf("an agent elsewhere under the same name: status %d, %s", status, errs)
	}
	h.must("down")
	h.ns = home
	if after := snapshot(t, h.ns); after != before {
		t.Errorf("not as before: %s", cmp.Diff(strings.Split(before, "\n"), strings.Split(after, "\n")))
	}
}

// A card gets its MTU a moment after the agent has started: until then its uplink has a problem, and the ports serve.
func TestS167_AStartWithACardOfASmallMTU(t *testing.T) {
	h := newHost(t)
	h.guest("up1", "02:00:00:00:00:f1", "198.51.100.1/24")
	h.guest("pa", "02:00:00:00:00:0a", "192.0.2.10/24")
	h.ip("link set up1 mtu 1300")
	h.start("--config", h.file("heddle.yaml", strings.Replace(twoGuests, "name: lab",
		"name: lab\n    uplinks: [{name: u1, device: up1}]", 1)))
	if out := h.must("uplink", "list"); !strings.Contains(out, "low-mtu") {
		t.Errorf("no problem:\n%s", out)
	}
	if _, _, status := h.heddle("status"); status != 1 {
		t.Errorf("status ends with %d", status)
	}
	h.ip("link set up1 mtu 1500")
	h.await("the uplink is in full service", func() bool {
		return !strings.Contains(h.must("uplink", "list"), "low-mtu")
	})
}

func TestFailedFirstStartLeavesNothing(t *testing.T) {
	config := strings.Replace(twoGuests, "name: lab", "name: lab\n    uplinks: [{name: u1, device: up1}]", 1) +
		"  - {name: vmk0, switch: lab, portGroup: web, role: host, addresses: [192.0.2.1/24]}\n"
	for _, c := range []struct {
		name, want string
		breakIt    func(h *host)
	}{
		{"state cannot be written", "state.json.new", func(h *host) {
			if err := os.MkdirAll(filepath.Join(h.dir, "state", h.name, "state.json.new"), 0o700); err != nil {
				t.Fatal(err)
			}
		}},
		{"socket cannot be made", "remove the socket", func(h *host) {
			inTheWay := filepath.Join(h.dir, "run", h.name+".sock")
			if err := os.MkdirAll(filepath.Join(inTheWay, "x"), 0o700); err != nil {
				t.Fatal(err)
			}
			h.t.Cleanup(func() { _ = os.RemoveAll(inTheWay) })
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHost(t)
			h.guest("up1", "02:00:00:00:00:f1", "198.51.100.1/24")
			h.guest("pa", "02:00:00:00:00:0a", "192.0.2.10/24")
			c.breakIt(h)
			before := snapshot(t, h.ns)
			_, errs, status := h.heddle("agent", "--config", h.file("heddle.yaml", config))
			if status == 0 || !strings.Contains(errs, c.want) {
				t.Errorf("status %d: %s", status, errs)
			}
			if after := snapshot(t, h.ns); after != before {
				t.Errorf("not as before: %s", cmp.Diff(strings.Split(before, "\n"), strings.Split(after, "\n")))
			}
			if _, err := os.Stat(filepath.Join(h.dir, "run", "bpf")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the bpf file system is left: %v", err)
			}
		})
	}
}

func TestDownWithADamagedStateRemovesWhatHeddleMade(t *testing.T) {
	h, _, _, _ := twoVMs(t)
	h.must("port", "connect", "vmk0", "--port-group", "web", "--role", "host")
	h.kill(syscall.SIGKILL)
	if err := os.WriteFile(filepath.Join(h.dir, "state", h.name, "state.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, errs, status := h.heddle("down")
	if status == 0 || !strings.Contains(errs, "damaged") {
		t.Errorf("status %d: %s", status, errs)
	}
	if left := run(t, h.ns, "ip -o link"); strings.Contains(left, "vmk0") {
		t.Errorf("left:\n%s", left)
	}
	if _, err := os.Stat(filepath.Join(h.dir, "run", "bpf")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the bpf file system is left: %v", err)
	}
	h.heddle("down", "--purge")
	if _, err := os.Stat(filepath.Join(h.dir, "state", h.name)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the state is left: %v", err)
	}
}

func TestDownEndsAnAgentThatIsStarting(t *testing.T) {
	h := newHost(t)
	h.guest("pa", "02:00:00:00:00:0a", "192.0.2.10/24")
	before := snapshot(t, h.ns)
	cmd := h.command("agent", "--config", h.file("heddle.yaml", twoGuests))
	cmd.Stdout, cmd.Stderr = h.log, h.log
	if err := h.ns.Start(cmd); err != nil {
		t.Fatal(err)
	}
	h.await("the agent has its lock and does not listen yet", func() bool {
		_, err := os.Stat(filepath.Join(h.dir, "run", h.name+".lock"))
		return err == nil
	})
	downs := make(chan string, 2)
	for range 2 {
		go func() {
			_, errs, status := h.heddle("down")
			downs <- fmt.Sprint(status, errs)
		}()
	}
	for range 2 {
		if got := <-downs; got != "0" {
			t.Errorf("down: %s", got)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the agent: %v", err)
	}
	if after := snapshot(t, h.ns); after != before {
		t.Errorf("not as before: %s", cmp.Diff(strings.Split(before, "\n"), strings.Split(after, "\n")))
	}
}

// Two agents with one state would each overwrite what the other remembers.
func TestTwoAgentsDoNotShareAState(t *testing.T) {
	testkit.Long(t, "waits for agents that do not start")
	h, _, _, _ := twoVMs(t)
	h.must("port", "connect", "ra", "--port-group", "web")
	other := filepath.Join(h.dir, "run2")
	_, errs, status := h.heddle("agent", "--run-dir", other)
	want := fmt.Sprintf("process %d with --run-dir %s", h.agent.Process.Pid, filepath.Join(h.dir, "run"))
	if status != 1 || !strings.Contains(errs, want) {
		t.Errorf("another run directory: status %d, want %q:\n%s", status, want, errs)
	}
	if _, errs, status := h.heddle("down", "--run-dir", other); status != 1 ||
		!strings.Contains(errs, "use heddle down --run-dir "+filepath.Join(h.dir, "run")) {
		t.Errorf("down with another run directory: status %d\n%s", status, errs)
	}
	if err := os.Remove(filepath.Join(h.dir, "run", h.name+".lock")); err != nil {
		t.Fatal(err)
	}
	if _, errs, status := h.heddle("agent"); status != 1 ||
		!strings.Contains(errs, fmt.Sprintf("process %d", h.agent.Process.Pid)) {
		t.Errorf("the lock was removed: status %d\n%s", status, errs)
	}
	h.kill(syscall.SIGKILL)
	h.start()
	if got := h.port("ra").Name; got != "ra" {
		t.Errorf("the port that was connected is %q", got)
	}
}

// An empty file removes nothing, unless the operator confirms it.
func TestAnEmptyConfigurationIsAppliedOnlyWhenMeant(t *testing.T) {
	testkit.Long(t, "starts an agent in each way for each file")
	h := newHost(t)
	file := h.file("heddle.yaml", twoGuests)
	h.start("--config", file)
	for _, content := range []string{"", "# switches:\n"} {
		h.file("heddle.yaml", content)
		before := strings.Count(h.log.String(), "which removes nothing here")
		h.hangUp()
		h.await("the file is read again", func() bool {
			return strings.Count(h.log.String(), "which removes nothing "+
				"here") > before
		})
		h.kill(syscall.SIGTERM)
		h.start("--config", file)
		if out := h.must("switch", "list"); !strings.Contains(out, "lab") {
			t.Fatalf("the file %q removed the switch:\n%s", content, out)
		}
	}
	if _, errs, status := h.heddle("apply", "-f", file); status != 2 || !strings.Contains(errs, "--yes") {
		t.Errorf("status %d: %s", status, errs)
	}
	if out := h.must("apply", "-f", file, "--dry-run"); !strings.Contains(out, "- switch lab") {
		t.Errorf("the dry run does not say what goes:\n%s", out)
	}
	h.must("apply", "-f", file, "--yes")
	for range 2 {
		if out := h.must("switch", "list", "-o", "json"); strings.TrimSpace(out) != "[]" {
			t.Errorf("switches are left: %s", out)
		}
		h.kill(syscall.SIGTERM)
		h.start("--config", file)
	}
	h.kill(syscall.SIGTERM)
	h.file("heddle.yaml", twoGuests)
	h.start("--config", file)
	if out := h.must("switch", "list"); !strings.Contains(out, "lab") {
		t.Errorf("the file does not count again:\n%s", out)
	}
	h.kill(syscall.SIGTERM)
	h.file("heddle.yaml", "switches: []\n")
	h.start("--config", file)
	if out := h.must("switch", "list", "-o", "json"); strings.TrimSpace(out) != "[]" {
		t.Errorf("a list that was emptied does not count: %s", out)
	}
}
