package metrics

import (
	"context"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/controller/together"
	"heddle/internal/fabric"
	"heddle/internal/platform/health"
)

// Every metric of the list is served, with its labels, and alerts and dashboard use no other.
func TestFamilies_AreServedAndUsed(t *testing.T) {
	at := time.Unix(2e9, 0)
	r := New(Source{Calls: func() map[string]int64 { return map[string]int64{"done": 7} },
		Rollouts: func() map[string]int { return map[string]int{"halted": 1, "running": 0} },
		Drives:   func() bool { return true },
		Together: func() together.Counts {
			return together.Counts{Made: 4, Refused: 2, Late: 1, Spread: time.Second}
		},
		Refused: func() map[string]int64 { return map[string]int64{"foreign": 3} },
		Network: func() *fabric.Verdict {
			return &fabric.Verdict{Paths: 9, Passing: 4, Waiting: 3, Tunnels: 5, TunnelsPassing: 5,
				Findings: []fabric.Finding{{Code: fabric.MTULow}, {Code: fabric.MTULow}, {Code: fabric.Slow,
					Note: true}}}
		},
		Status: func(context.Context) *api.ControllerStatus {
			return &api.ControllerStatus{Controller: "c1", Started: at, RootEnds: at, DiskSize: 2, DiskFree: 1,
				Snapshots: &api.SnapshotState{Last: at, Every: time.Hour, Count: 4, Failures: 2},
				Clock:     api.ClockFree,
				Findings:  health.SignIn("https://id.example", "it does not answer", at),
				Hosts:     map[string]int{"up": 3, "down": 2, "reverted": 1}, RootStage: "announced",
				Expiring: []api.ExpiryWarning{{Subject: "host", Level: api.ExpiryUrgent}},
				Store: api.StoreStatus{Size: 1, Quota: 2, Members: []api.StoreMember{{Lag: 5}, {Leader: true,
					Learner: true}}}}
		}})
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	served := map[string]float64{}
	for _, f := range families {
		served[f.GetName()] = 0
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			served[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	var known []string
	for _, f := range Families() {
		known = append(known, f.Name)
		if _, ok := served[f.Name]; !ok {
			t.Errorf("%s is not served", f.Name)
		}
	}
	for name, want := range map[string]float64{hosts + " up": 3, hosts + " down": 2, hosts + " reverted": 1, expiring +
		" urgent host": 1, expiring +
		" soon host": 0,
		rotating: 1, storeLag: 5, storeVotes + " learner": 1, calls + " done": 7, rollouts + " halted": 1,
		drives: 1, agreed + " made": 4, agreed + " refused": 2, late: 1, spread: 1,
		signIn: 0, findings + " wrong": 1,
		snapLast: 2e9, snapEvery: 3600, snapCount: 4, snapFails: 2, refused + " foreign": 3, expires + " root": 2e9,
		clock: 0, faults + " mtu": 2, faults + " slow": 1, faults + " bundle": 0, paths + " failing": 2,
		paths + " unknown": 3, tunnels + " passing": 5} {
		if got, ok := served[name]; !ok || got != want {
			t.Errorf("%s is %v", name, got)
		}
	}
	for _, file := range []string{"prometheus/controller-alerts.yaml", "grafana/heddle-controller.json"} {
		text, err := os.ReadFile("../../../packaging/controller/" + file)
		if err != nil {
			t.Fatal(err)
		}
		names := regexp.MustCompile(`heddle_controller_\w+`).FindAllString(string(text), -1)
		if len(names) < 10 {
			t.Errorf("%s uses %d metrics", file, len(names))
		}
		for _, n := range names {
			if !slices.Contains(known, n) {
				t.Errorf("%s uses %s, which is no metric", file, n)
			}
		}
	}
}
