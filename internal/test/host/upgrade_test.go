package host

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/packet"

	"heddle/internal/api"
	"heddle/internal/lab/netns"
	"heddle/internal/test/testkit"
)

// grownTables turns our tables into those of the other version: a larger one, records that have a field more at their
// end, and one whose fields are all in other places.
func grownTables(text string) (string, error) {
	edits := [][2]string{{`MAX_MARKS = 65536`, `MAX_MARKS = 131072`}, {`(struct counters \{\n)`, "$1\tu64 grown;\n"}}
	for _, record := range []string{"port", "learned", "storm_bucket"} {
		edits = append(edits, [2]string{`(struct ` + record + ` \{\n(?:[^}].*\n)*)\};`, "$1\tu64 grown[8];\n};"})
	}
	for _, e := range edits {
		re := regexp.MustCompile(e[0])
		if n := len(re.FindAllString(text, -1)); n != 1 {
			return "", fmt.Errorf("tables.h says %s %d times, want once: change this test", e[0], n)
		}
		text = re.ReplaceAllString(text, e[1])
	}
	return text, nil
}

func growTables(path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text, err := grownTables(string(b))
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o600)
}

// grownOnce builds the other version once for all tests of the process.
var grownOnce = sync.OnceValues(buildGrown)

// grownBinary is another version of this program: the same source, with larger tables and records that have more
// fields.
func grownBinary(t *testing.T) string {
	t.Helper()
	testkit.Root(t)
	testkit.Tool(t, "clang-19", "go")
	path, err := grownOnce()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// grownDir is where this process builds it.
func grownDir() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("heddle-grown-%d", os.Getpid()))
}

func buildGrown() (string, error) {
	dir := grownDir()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	source := filepath.Join(dir, "bpf")
	if err := os.CopyFS(source, os.DirFS("../../../bpf")); err != nil {
		return "", err
	}
	if err := growTables(filepath.Join(source, "core", "tables.h")); err != nil {
		return "", err
	}
	object, records, binary := filepath.Join(dir, "vswitch.o"), filepath.Join(dir, "abi_gen.go"), filepath.Join(dir,
		"heddle")
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{
		abs("../../../internal/dataplane/vswitch_bpfel.o"): object, abs("../../../internal/abi/abi_gen.go"): records}})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600); err != nil {
		return "", err
	}
	for _, command := range [][]string{
		{"clang-19", "-O2", "-g", "-Wall", "-target", "bpfel", "-mcpu=v3", "-I", source, "-c",
			filepath.Join(source, "switch.bpf.c"), "-o", object},
		{"go", "run", "../../../internal/abi/gen", "clang-19", filepath.Join(source, "abi.bpf.c"), records},
		{"go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", binary, "heddle/cmd/heddle"},
	} {
		cmd := exec.Command(command[0], command[1:]...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("%s: %w\n%s", strings.Join(command, " "), err, out)
		}
	}
	return binary, nil
}

func abs(path string) string {
	a, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	return a
}

// speaks has the guest send one frame from each of so many other MACs.
func speaks(t *testing.T, vm *netns.NS, macs int) {
	t.Helper()
	err := vm.Do(func() error {
		eth0, err := net.InterfaceByName("eth0")
		if err != nil {
			return err
		}
		c, err := packet.Listen(eth0, packet.Raw, 0x88b5, nil) // IEEE 802 local experimental EtherType
		if err != nil {
			return err
		}
		defer c.Close()
		for i := range macs {
			f := append([]byte{2, 0, 0, 0, 0, 0xee, 2, 1, 0, 0, byte(i >> 8), byte(i), 0x88, 0xb5}, make([]byte, 46)...)
			if _, err := c.WriteTo(f, &packet.Addr{HardwareAddr: f[:6]}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// learnedMACs are the learned addresses, each with its port and VLAN, sorted.
func (h *host) learnedMACs() (list []string) {
	h.t.Helper()
	var macs []api.MAC
	if err := json.Unmarshal([]byte(h.must("mac", "list", "-o", "json")), &macs); err != nil {
		h.t.Fatal(err)
	}
	for _, m := range macs {
		if m.Kind == "learned" {
			list = append(list, fmt.Sprintf("%s VLAN %s at %s/%s", m.MAC, m.VLAN, m.Switch, m.Port))
		}
	}
	slices.Sort(list)
	return list
}

// counters are all counters of some ports, by port and name.
func (h *host) counters(ports ...string) map[string]uint64 {
	h.t.Helper()
	var all []api.Stats
	if err := json.Unmarshal([]byte(h.must("stats", "-o", "json")), &all); err != nil {
		h.t.Fatal(err)
	}
	counts := map[string]uint64{}
	for _, s := range all {
		if slices.Contains(ports, s.Name) {
			for _, c := range append(s.Counters, s.Extra...) {
				counts[s.Name+" "+c.Name] = c.Value
			}
		}
	}
	if len(counts) < len(ports) {
		h.t.Fatalf("of the ports %q there are these counters alone: %v", ports, counts)
	}
	return counts
}

// runtimePorts are the ports that were connected by command, sorted.
func (h *host) runtimePorts() (names []string) {
	h.t.Helper()
	var all []api.Port
	if err := json.Unmarshal([]byte(h.must("port", "list", "-o", "json")), &all); err != nil {
		h.t.Fatal(err)
	}
	for _, p := range all {
		if p.Origin == api.FromRun {
			names = append(names, p.Name)
		}
	}
	slices.Sort(names)
	return names
}

const learningGuests = `
switches:
  - name: lab
    portGroups:
      - {name: web, vlan: {access: 100}, security: {forgedTransmits: accept, macLearning: {enabled: true, limit: 1000}}}
      - {name: guarded, vlan: {access: 100}, security: {addressGuard: {enabled: true}}}
ports:
  - name: g
    switch: lab
    portGroup: guarded
    device: pg
    mac: "02:00:00:00:00:0d"
    security: {addressGuard: {addresses: [192.0.2.13]}}
  - {name: a, switch: lab, portGroup: web, device: pa, mac: "02:00:00:00:00:0a"}
  - {name: b, switch: lab, portGroup: web, device: pb, mac: "02:00:00:00:00:0b"}
`

// The agent is replaced by one with larger tables and other records, and that by ours again, while a stream runs: no
// packet is lost, and learned MACs, counters and ports connected by command are still there. Of a guarded port no
// forged frame passes at any moment, and no permitted one is lost.
func TestUpgradeAndDowngradeLoseNoFrame(t *testing.T) {
	testkit.Long(t, "builds another version, and streams while agents change")
	testkit.Never(t)
	other := grownBinary(t)
	h := newHost(t)
	file := h.file("heddle.yaml", learningGuests)
	a, b := h.guest("pa", "02:00:00:00:00:0a", "192.0.2.10/24"), h.guest("pb", "02:00:00:00:00:0b", "192.0.2.11/24")
	c := h.guest("pc", "02:00:00:00:00:0c", "192.0.2.12/24")
	g := h.guest("pg", "02:00:00:00:00:0d", "192.0.2.13/24")
	h.start("--config", file)
	h.must("port", "connect", "c", "--port-group", "web", "--device", "pc")
	for _, port := range []string{"a", "b", "c", "g"} {
		h.awaitPort(port, api.Up)
	}
	if !pings(a, "192.0.2.11") || !pings(c, "192.0.2.11") {
		t.Fatal("guests do not reach each other")
	}
	const macs = 300
	speaks(t, b, macs)
	var learned []string
	h.await("MACs are learned", func() bool { learned = h.learnedMACs(); return len(learned) == macs })
	knows(t, a, "192.0.2.11", "02:00:00:00:00:0b")
	knows(t, b, "192.0.2.10", "02:00:00:00:00:0a")
	knows(t, g, "192.0.2.11", "02:00:00:00:00:0b")
	before := h.counters("a", "b")
	counted := before
	s := startNumbered(t, a, b, "192.0.2.11")
	permitted, forged := startNumbered(t, g, b, "192.0.2.11"), startForged(t, g, b)
	for i, binary := range []string{other, "", other, ""} {
		h.kill(syscall.SIGKILL)
		h.binary = binary
		h.start("--config", file)
		for _, port := range []string{"a", "b", "c", "g"} {
			h.awaitPort(port, api.Up)
		}
		if got := h.learnedMACs(); !slices.Equal(got, learned) {
			t.Errorf("exchange %d: learned MACs %s", i, cmp.Diff(learned, got))
		}
		now := h.counters("a", "b")
		for name, n := range counted {
			if now[name] < n {
				t.Errorf("exchange %d: counter %s went from %d to %d", i, name, n, now[name])
			}
		}
		counted = now
		if p := h.port("c"); p.Origin != api.FromRun {
			t.Errorf("exchange %d: port c %+v", i, p)
		}
		if !pings(c, "192.0.2.11") {
			t.Errorf("exchange %d: no traffic from c", i)
		}
	}
	frames := s.finish()
	permitted.finish()
	in := h.counters("a")
	sent := forged.finish(a)
	h.await("every forged frame is counted", func() bool {
		return h.refusedFrames("g", "ip-source-not-allowed") == sent
	})
	t.Logf("%d forged frames", sent)
	if n := in["a packetsInUnicast"] - before["a packetsInUnicast"]; n != frames {
		t.Errorf("%d unicast frames counted from a, whose stream had %d", n, frames)
	}
	if n := strings.Count(h.log.String(), "are taken over"); n != 4 {
		t.Errorf("tables were taken over %d times: this test is void", n)
	}
}
