package host

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"heddle/internal/api"
	"heddle/internal/lab/netns"
	"heddle/internal/observe/event"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/cable"
)

const movingGuest = `
switches:
  - name: lab
    portGroups:
      - {name: web, vlan: {access: 100}}
      - {name: other, vlan: {access: 200}}
ports:
  - {name: a, switch: lab, portGroup: web, device: pa, mac: "02:00:00:00:00:0a"}
  - {name: b, switch: lab, portGroup: web, device: pb, mac: "02:00:00:00:00:0b"}
  - {name: c, switch: lab, portGroup: web, device: pc, mac: "02:00:00:00:00:0c"}
`

// calls is a stream of numbered broadcasts until stop is called, which gives the last number. The number is given to a
// frame just before it is sent.
func calls(t *testing.T, from *netns.NS) (number *atomic.Uint64, stop func() uint64) {
	t.Helper()
	e := cable.Open(t, from, "eth0")
	number = &atomic.Uint64{}
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(500 * time.Microsecond)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
				e.Send(call(number.Add(1)))
			}
		}
	}()
	return number, func() uint64 {
		close(quit)
		<-done
		return number.Load()
	}
}

func call(n uint64) []byte {
	f := append([]byte{255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 0x0a, 0x88, 0xb5}, make([]byte, 46)...)
	binary.BigEndian.PutUint64(f[14:], n)
	return f
}

// heard are the numbers of the calls that came before the marker.
func heard(e *cable.End, marker uint64) (numbers []uint64) {
	for _, f := range e.Until(call(marker)) {
		numbers = append(numbers, binary.BigEndian.Uint64(f[14:]))
	}
	return numbers
}

// flaps is how often the guest's adapter lost or got its carrier.
func flaps(t *testing.T, ns *netns.NS) int {
	t.Helper()
	m := regexp.MustCompile(`"carrier_changes":\s*(\d+)`).FindStringSubmatch(run(t, ns, "ip -j -s -s link show eth0"))
	if m == nil {
		t.Fatal("ip does not tell carrier changes")
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A port is moved to another port group, and back, while broadcasts and a numbered stream run: it gets no frame that is
// sent once the command has returned, those that stay lose none, and no link flaps.
func TestAPortIsMovedUnderAStream(t *testing.T) {
	testkit.Never(t)
	h := newHost(t)
	h.start("--config", h.file("heddle.yaml", movingGuest))
	vms := map[string]*netns.NS{}
	for i, name := range []string{"a", "b", "c"} {
		vms[name] = h.guest("p"+name, fmt.Sprintf("02:00:00:00:00:0%s", name), fmt.Sprintf("192.0.2.1%d/24", i))
		h.awaitPort(name, api.Up)
	}
	if !pings(vms["a"], "192.0.2.11") {
		t.Fatal("guests do not reach each other")
	}
	before := flaps(t, vms["c"])
	b, c := cable.Open(t, vms["b"], "eth0"), cable.Open(t, vms["c"], "eth0")
	s := startNumbered(t, vms["a"], vms["b"], "192.0.2.11")
	number, stop := calls(t, vms["a"])
	h.await("broadcasts", func() bool { return number.Load() > 100 })

	h.must("port", "move", "c", "--port-group", "other")
	left := number.Load()
	h.await("broadcasts after the move", func() bool { return number.Load() > left+200 })
	returning := number.Load()
	h.must("port", "move", "c", "--port-group", "web")
	back := number.Load()
	h.await("broadcasts after the way back", func() bool { return number.Load() > back+200 })
	sent := stop()
	cable.Open(t, vms["a"], "eth0").Send(call(sent + 1))

	next, late := uint64(0), uint64(0)
	for _, n := range heard(b, sent+1) {
		if next++; n != next {
			t.Fatalf("the guest that stays received frame %d where %d was due", n, next)
		}
	}
	if next != sent {
		t.Errorf("the guest that stays received %d of %d frames", next, sent)
	}
	for _, n := range heard(c, sent+1) {
		switch {
		case n > left && n < returning:
			t.Errorf("the moved guest received frame %d; it had left by frame %d", n, left)
		case n > back:
			late++
		}
	}
	if late != sent-back {
		t.Errorf("back in its segment the guest received %d of %d frames", late, sent-back)
	}
	s.finish()
	if n := flaps(t, vms["c"]) - before; n != 0 {
		t.Errorf("the moved guest's link changed %d times", n)
	}
}

// applied is what "heddle apply" says.
func (h *host) applied(args ...string) (out api.Applied) {
	h.t.Helper()
	if err := json.Unmarshal([]byte(h.must(append([]string{"apply", "-o", "json"}, args...)...)), &out); err != nil {
		h.t.Fatal(err)
	}
	return out
}

// inKernel sums up every table of the plan, both halves, and the word that says which is in force.
func (h *host) inKernel() string {
	h.t.Helper()
	var sums []string
	for _, table := range []string{"control", "ports", "vlan_sets", "teams", "segments", "groups", "members",
		"owners"} {
		// one directory a version of the tables
		pins, err := filepath.Glob(filepath.Join(h.dir, "run", "bpf", h.name, "*", table))
		if err != nil || len(pins) != 1 {
			h.t.Fatalf("table %s is pinned at %v, %v", table, pins, err)
		}
		m, err := ebpf.LoadPinnedMap(pins[0], nil)
		if err != nil {
			h.t.Fatal(err)
		}
		b, err := readAll(m)
		if err != nil {
			h.t.Fatal(err)
		}
		sums = append(sums, fmt.Sprintf("%s %x", table, sha256.Sum256(b)))
	}
	return strings.Join(sums, "\n")
}

func readAll(m *ebpf.Map) ([]byte, error) {
	defer m.Close()
	if m.MaxEntries() == 1 {
		return m.LookupBytes(uint32(0))
	}
	mem, err := m.Memory()
	if err != nil {
		return nil, err
	}
	b := make([]byte, mem.Size())
	_, err = mem.ReadAt(b, 0)
	return b, err
}

// The active file is applied again, by command and by SIGHUP: nothing is written into the kernel, and no change is
// reported.
func TestTheSameFileAgainWritesNothing(t *testing.T) {
	testkit.Long(t, "watches what is written while files are applied again")
	h, file, _, _ := twoVMs(t)
	h.must("port", "connect", "c", "--port-group", "web")
	other := strings.Replace(twoGuests, "access: 100", "access: 300", 1)
	was := h.inKernel()
	if out := h.applied("-f", h.file("other.yaml", other)); len(out.Changes) != 1 || out.ActiveAt == nil {
		t.Errorf("a change: %+v", out)
	}
	before := h.inKernel()
	if before == was {
		t.Fatal("a change left the tables as they were: this test is void")
	}
	if out := h.applied("-f", filepath.Join(h.dir, "other.yaml")); len(out.Changes)+len(out.Effects) > 0 ||
		out.ActiveAt != nil || out.ActiveAfterSeconds != 0 {
		t.Errorf("the same file again: %+v", out)
	}
	h.file("heddle.yaml", other)
	applied := strings.Count(h.log.String(), "configuration applied")
	h.hangUp()
	h.await("reload", func() bool { return strings.Count(h.log.String(), "configuration applied") == applied+1 })
	if !strings.Contains(h.log.String(), `msg="configuration applied" file=`+file+" changes=0") {
		t.Errorf("the reload of the same content changed something")
	}
	if after := h.inKernel(); after != before {
		t.Errorf("tables before\n%s\nafter\n%s", before, after)
	}
}

func (h *host) hangUp() {
	h.t.Helper()
	if err := h.agent.Process.Signal(syscall.SIGHUP); err != nil {
		h.t.Fatal(err)
	}
}

// SIGHUP shows and does what "heddle apply" of the same file does, and a file of which a part is refused changes
// nothing of the rest.
func TestSIGHUPDoesWhatApplyDoes(t *testing.T) {
	testkit.Long(t, "goes through many files; TestApplyOutlivesTheAgentUntilTheFileIsEdited applies some")
	h, _, a, _ := twoVMs(t)
	good := strings.Replace(twoGuests, "access: 100}", "access: 300}, security: {forgedTransmits: accept}", 1)
	file := h.file("heddle.yaml", good)
	shown := h.applied("-f", file, "--dry-run")
	if len(shown.Changes) != 2 || len(shown.Effects) == 0 || h.port("a").VLAN.String() != "access 100" {
		t.Fatalf("dry run: %+v", shown)
	}
	h.hangUp()
	h.await("the plan is in force", func() bool { return h.port("a").VLAN.String() == "access 300" })
	h.awaitEvent(event.Applied, "", file+" applied: 2 changes")
	for _, c := range shown.Changes {
		if want := "what=" + strconv.Quote(c.String()); !strings.Contains(h.log.String(), want) {
			t.Errorf("SIGHUP does not show %s", want)
		}
	}
	for _, e := range shown.Effects {
		if want := "what=" + strconv.Quote(e.Text); !strings.Contains(h.log.String(), want) {
			t.Errorf("SIGHUP does not show %s", want)
		}
	}

	// connected by command, into a port group that the file may not take away
	h.must("port", "connect", "c", "--port-group", "web")
	before := h.inKernel()
	for refused, content := range map[string]string{
		"heddle.yaml:5": strings.Replace(twoGuests, "access: 100", "access: 4095", 1),
		"portGroup: web": strings.ReplaceAll(strings.Replace(twoGuests, "access: 100", "access: 400", 1), "web",
			"renamed"),
	} {
		h.file("heddle.yaml", content)
		_, errs, status := h.heddle("apply", "-f", file)
		if status != 2 || !strings.Contains(errs, refused) {
			t.Errorf("apply: status %d, %s", status, errs)
		}
		tried := strings.Count(h.log.String(), "reload: nothing was changed")
		h.hangUp()
		h.await("SIGHUP refuses it too", func() bool {
			return strings.Count(h.log.String(), "reload: nothing was "+
				"changed") > tried
		})
		if !strings.Contains(h.log.String()[strings.LastIndex(h.log.String(), "reload: nothing was changed"):],
			refused) {
			t.Errorf("SIGHUP does not say what is refused: %s", refused)
		}
		if now := h.inKernel(); now != before {
			t.Errorf("%s is refused and tables changed:\n%s\n%s", refused, before, now)
		}
		if p := h.port("a"); p.VLAN.String() != "access 300" || p.PortGroup != "web" {
			t.Errorf("%s is refused and the rest in force: %+v", refused, p)
		}
	}
	if !pings(a, "192.0.2.11") {
		t.Error("no traffic after all that")
	}
}
