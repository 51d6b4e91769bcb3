package run

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"heddle/internal/lab"
	"heddle/internal/lab/experiment"
	"heddle/internal/lab/scenario"
	"heddle/internal/lab/sim"
	"heddle/internal/lab/traffic"
	"heddle/internal/spec"
	"heddle/internal/test/testkit"
)

// The real lab and the simulated one have the same counts: replies to every ping, and frames in each direction at every
// device of every agent. Nothing but pings is on the way while they are counted, so no difference is allowed: hosts
// without IPv6 addresses have no IPv6 (no neighbour discovery, no MLD), the bridge runs no spanning tree and no
// queries, and what ARP has resolved is permanent (no probes).
func TestSimulationAgreesWithTheRealLab(t *testing.T) {
	testkit.Long(t, "runs experiments both simulated and in a real lab; TestS91_RepliesAndUplinkCopiesPerPing has "+
		"one")
	for _, name := range experiment.Names() {
		t.Run(name, func(t *testing.T) {
			ctx, r := newRunner(t)
			e, err := experiment.Find(name)
			if err != nil {
				t.Fatal(err)
			}
			for i := range e.Rows {
				agree(ctx, t, r, e, &e.Rows[i])
			}
		})
	}
}

func agree(ctx context.Context, t *testing.T, r *runner, e *experiment.Experiment, row *experiment.Row) {
	t.Helper()
	if err := r.prepare(ctx, row, func(string) {}); err != nil {
		t.Fatalf("%s: %v", row.Name, err)
	}
	l := r.labs[row.Scenario]
	p, err := r.ends(row)
	if err != nil {
		t.Fatal(err)
	}
	var before, after map[string]deviceCount
	var res traffic.Result
	for took := 200 * time.Millisecond; took < time.Minute && requests(res) < 5; took *= 2 {
		// longer on a loaded machine
		before = deviceCounts(ctx, t, l)
		if res, err = traffic.Send(ctx, p.Client, traffic.Load{Kind: traffic.KindEcho, Duration: took, Rate: 50},
			addrPort(p.Addr)); err != nil {
			t.Fatalf("%s: %v", row.Name, err)
		}
		after = deviceCounts(ctx, t, l)
	}

	all, err := sim.Experiment(e, sim.Options{Pings: int(res.Echo.Requests), Rows: []string{row.Name}})
	if err != nil {
		t.Fatal(err)
	}
	want := all[0]
	if res.Echo.RepliesPerPing != want.RepliesPerPing {
		t.Errorf("%s: %v replies per ping, simulated %v", row.Name, res.Echo.RepliesPerPing, want.RepliesPerPing)
	}
	if res.Echo.Requests < 5 || len(after) < 4 {
		t.Errorf("%s: only %d pings at %d devices were counted", row.Name, res.Echo.Requests, len(after))
	}
	simulated := simulatedCounts(want)
	// Copies may still be on their way when the last reply has come.
	differs := func() bool {
		return len(after) < 4 || slices.ContainsFunc(slices.Collect(maps.Keys(after)), func(end string) bool {
			w, ok := simulated[end]
			return !ok || deviceCount{after[end].out - before[end].out, after[end].in - before[end].in} != w
		})
	}
	for until := time.Now().Add(time.Minute); differs() && time.Now().Before(until); {
		time.Sleep(10 * time.Millisecond)
		after = deviceCounts(ctx, t, l)
	}
	for _, end := range slices.Sorted(maps.Keys(after)) {
		got := deviceCount{after[end].out - before[end].out, after[end].in - before[end].in}
		if w, ok := simulated[end]; !ok || got != w {
			t.Errorf("%s: %d pings are %+v frames at %s, simulated %+v", row.Name, res.Echo.Requests, got, end, w)
		}
	}
}

// requests is how many pings were sent.
func requests(r traffic.Result) uint64 {
	if r.Echo == nil {
		return 0
	}
	return r.Echo.Requests
}

// deviceCount is the frames that a switch hands to a device and those that come in there.
type deviceCount struct{ out, in uint64 }

// simulatedCounts are the frames at both ends of every link, by "node/device".
func simulatedCounts(r sim.Result) map[string]deviceCount {
	counts := map[string]deviceCount{}
	for _, l := range r.Links {
		counts[l.A] = deviceCount{l.AtoB, l.BtoA}
		counts[l.B] = deviceCount{l.BtoA, l.AtoB}
	}
	return counts
}

// deviceCounts reads the counters of all agents of a lab, by "node/device". A host's own interfaces are no links.
func deviceCounts(ctx context.Context, t *testing.T, l *lab.Lab) map[string]deviceCount {
	t.Helper()
	counts := map[string]deviceCount{}
	for node, cfg := range configs(l.Scenario) {
		stats, err := l.Agent(node).Stats(ctx)
		if err != nil {
			t.Fatalf("%s: %v", node, err)
		}
		for _, s := range stats {
			device := deviceOf(cfg, s.Switch, s.Name)
			if device == "" {
				continue
			}
			var c deviceCount
			for _, n := range s.Counters {
				switch {
				case strings.HasSuffix(n.Name, "cast") && strings.HasPrefix(n.Name, "packetsOut"):
					c.out += n.Value
				case strings.HasSuffix(n.Name, "cast") && strings.HasPrefix(n.Name, "packetsIn"):
					c.in += n.Value
				}
			}
			counts[scenario.End{Node: node, Device: device}.String()] = c
		}
	}
	return counts
}

// configs are the configurations of all agents of a scenario, by node.
func configs(s *scenario.Scenario) map[string]*spec.Config {
	all := map[string]*spec.Config{}
	for _, h := range s.Hosts {
		all[h.Name] = h.Config
	}
	for _, sw := range s.Switches {
		if sw.Kind == scenario.Heddle {
			all[sw.Name] = sw.Config
		}
	}
	return all
}

// deviceOf is the device of an uplink or of a vNIC's port; "" for a host interface.
func deviceOf(cfg *spec.Config, vswitch, name string) string {
	for _, sw := range cfg.Switches {
		for _, u := range sw.Uplinks {
			if sw.Name == vswitch && u.Name == name {
				return u.Device
			}
		}
	}
	if p := scenario.Port(cfg, name); p != nil && p.ActualRole() != spec.Host {
		return p.Device
	}
	return ""
}
