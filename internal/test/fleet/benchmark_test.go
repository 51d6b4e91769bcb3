package fleet

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"heddle/internal/api"
	"heddle/internal/test/testkit"
)

// TestS109_ABenchmarkNamesSlowPairsAndWhatTheyShare: four hosts send to one another at once. Where a host's cable is
// slow, all pairs that use it are named, with what they share; where frames of one pair get lost, that pair is. A
// second benchmark is refused while one runs, which ends when the caller leaves and when a host dies.
func TestS109_ABenchmarkNamesSlowPairsAndWhatTheyShare(t *testing.T) {
	testkit.Long(t, "runs several benchmarks among four hosts; linkproto has shorter ones")
	t.Parallel()
	testkit.Tool(t, "nft")
	testkit.Tool(t, "tc")
	f := newFleetSized(t, 4, ownConfig, "own1", "own2")
	f.controller.Start()
	for n, h := range f.hosts {
		f.controller.Join(h.Host, fmt.Sprintf("esx%d", n), map[string]string{"rack": "a"})
	}
	_, errs, status := f.controller.Heddle("health", "benchmark")
	if status == 0 || !strings.Contains(errs, "a benchmark takes two hosts at least") ||
		!strings.Contains(errs, "host esx3: none of its uplinks takes part in the health check") {
		t.Errorf("without a switch that has the health check: status %d: %s", status, errs)
	}
	f.controller.Define(strings.Replace(fleetText, "- name: dvs\n", "- name: dvs\n  healthCheck: true\n", 1))
	f.controller.Await("all paths pass", func() bool {
		h, _ := f.health()
		return h.Hosts == 4 && h.Paths > 0 && h.Passing == h.Paths
	})
	must := func(args ...string) {
		t.Helper()
		if out, err := f.network.Output(args[0], args[1:]...); err != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
	}

	t.Run("a slow cable", func(t *testing.T) {
		must("tc", "qdisc", "add", "dev", "eno2-2", "root", "tbf", "rate", "400kbit", "burst", "3000", "limit", "9000")
		defer must("tc", "qdisc", "del", "dev", "eno2-2", "root")
		b := f.benchmark(t, "--rate", "3M", "--duration", "3s")
		if len(b.Hosts) != 4 || len(b.Pairs) != 12 || b.Stopped != "" {
			t.Fatalf("%d hosts, %d pairs, stopped: %q", len(b.Hosts), len(b.Pairs), b.Stopped)
		}
		names(t, b, "esx2/uplink1", "esx0/uplink1 to esx2/uplink1", "esx3/uplink1 to esx2/uplink1")
		for _, p := range b.Pairs {
			if p.To == "esx2" && (len(p.Faults) == 0 || p.Throughput > 500_000) {
				t.Errorf("%+v", p)
			}
			if p.Rate != 1_000_000 || p.Sent > uint64(3*1_000_000/8/1500)+2 || p.Throughput > p.Offered {
				t.Errorf("more than its part: %+v", p)
			}
		}
	})
	t.Run("a pair that loses frames", func(t *testing.T) {
		must("nft", "add table bridge t; add chain bridge t f { type filter hook forward priority 0; }; "+
			"add rule bridge t f iifname eno2-0 oifname eno2-1 numgen random mod 100 < 40 drop")
		defer must("nft", "flush ruleset")
		b := f.benchmark(t, "--hosts", "esx0,esx1,esx3", "--rate", "2M")
		if len(b.Hosts) != 3 || len(b.Pairs) != 6 {
			t.Fatalf("%d hosts, %d pairs", len(b.Hosts), len(b.Pairs))
		}
		names(t, b, "lose frames", "esx0/uplink1 to esx1/uplink1")
		for _, p := range b.Pairs {
			if p.From == "esx0" && p.To == "esx1" && (p.Lost == 0 || p.Lost >= p.Sent || p.PingsLost == 0) {
				t.Errorf("%+v", p)
			}
		}
	})
	t.Run("one at a time, until the caller leaves", func(t *testing.T) {
		first, end := f.begin(t)
		_, errs, status := f.controller.Heddle("health", "benchmark")
		if status == 0 || !strings.Contains(errs, "another benchmark runs, begun by ") {
			t.Errorf("a second one: status %d: %s", status, errs)
		}
		if err := first.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		if out := end(); out != "" {
			t.Errorf("one that was interrupted prints %s", out)
		}
		for _, h := range f.hosts {
			h.Await("the host has ended its part", func() bool {
				return strings.Contains(h.Log(), "a benchmark of the network was ended before its time")
			})
		}
	})
	t.Run("a host dies", func(t *testing.T) {
		f.controller.Await("the controller takes another one", func() bool {
			_, errs, _ := f.controller.Heddle("health", "benchmark", "--duration", "1s", "--rate", "100k")
			return !strings.Contains(errs, "another benchmark runs")
		})
		_, end := f.begin(t)
		f.hosts[3].End(syscall.SIGKILL)
		var b api.NetworkBenchmark
		if out := end(); json.Unmarshal([]byte(out), &b) != nil || !strings.Contains(b.Stopped, "host esx3: ") {
			t.Errorf("it says %s", out)
		}
	})
	var list api.Audit
	f.controller.JSON(&list, "audit", "list", "--call", "RunBenchmark")
	if len(list.Entries) < 5 {
		t.Errorf("%d lines in the audit log", len(list.Entries))
	}
}

// benchmark measures, and expects faults.
func (f *fleet) benchmark(t *testing.T, args ...string) (b api.NetworkBenchmark) {
	t.Helper()
	out, errs, status := f.controller.Heddle(append([]string{"health", "benchmark", "-o", "json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &b); err != nil || status != 1 {
		t.Fatalf("status %d, %v: %s%s", status, err, out, errs)
	}
	return b
}

// begin begins a long benchmark, and returns when all hosts have. end waits until it is over, and returns what it
// printed.
func (f *fleet) begin(t *testing.T) (c *exec.Cmd, end func() string) {
	t.Helper()
	began := make([]int, len(f.hosts))
	count := func(i int) int { return strings.Count(f.hosts[i].Log(), "a benchmark of the network begins") }
	for i := range f.hosts {
		began[i] = count(i)
	}
	var out bytes.Buffer
	c = f.controller.Command("health", "benchmark", "--duration", "60s", "-o", "json")
	c.Stdout = &out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill() })
	for i, h := range f.hosts {
		h.Await("it runs", func() bool { return count(i) > began[i] })
	}
	return c, func() string {
		_ = c.Wait() // it ends with a status that tells what it found
		return out.String()
	}
}

// names expects a finding with these parts.
func names(t *testing.T, b api.NetworkBenchmark, parts ...string) {
	t.Helper()
	for _, text := range b.Findings {
		missing := 0
		for _, p := range parts {
			if !strings.Contains(text, p) {
				missing++
			}
		}
		if missing == 0 {
			t.Logf("found: %s", text)
			return
		}
	}
	t.Errorf("no finding has %q: %q", parts, b.Findings)
}
