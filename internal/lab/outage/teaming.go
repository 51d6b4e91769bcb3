package outage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"heddle/internal/lab"
	"heddle/internal/lab/experiment"
	"heddle/internal/lab/report"
	"heddle/internal/lab/report/topology"
	"heddle/internal/lab/scenario"
)

// TeamingName is the name of the experiment on beacon probing and load-based teaming, TeamingTitle what it shows.
const (
	TeamingName  = "teaming"
	TeamingTitle = "what beacon probing and load-based teaming do for guests (real traffic only)"
)

// Budgets of the experiment.
const (
	// BeaconBudget is how long traffic may be interrupted when the network behind an uplink fails: three beacons at
	// intervals of a second are missed, and a fourth second may pass between the failure and the next beacon (S51).
	BeaconBudget = 4.0
	// LoadWindows is within how many load windows a port must have moved: one may have begun before the load (S47).
	LoadWindows = 2.0
	// LoadGain is the least factor by which two senders of one uplink gain when they use two.
	LoadGain = 1.7
)

// The rows.
const (
	beaconRow = "beacon"
	loadRow   = "load-based"
)

func teamingRows() []string { return []string{beaconRow, loadRow} }

// CheckTeaming says whether the selected rows exist in that experiment.
func (o Options) CheckTeaming() error {
	_, err := experiment.Pick(TeamingName, teamingRows(), func(r string) string { return r }, o.Rows)
	return err
}

func (o Options) has(row string) bool { return len(o.Rows) == 0 || slices.Contains(o.Rows, row) }

// teamingEffort is how much is measured.
type teamingEffort struct {
	beacons, loads int           // rounds
	window         time.Duration // of load
	after          time.Duration // how long the throughput is measured after a port has moved
}

func (o Options) teamingEffort() teamingEffort {
	e := teamingEffort{beacons: 8, loads: 3, window: 30 * time.Second, after: 5 * time.Second}
	if o.Quick {
		e = teamingEffort{beacons: 3, loads: 3, window: 2 * time.Second, after: 2 * time.Second}
	}
	if o.Rounds > 0 {
		e.beacons, e.loads = o.Rounds, o.Rounds
	}
	return e
}

// teamingNetwork is the lab around the host's configuration: every uplink leads to a switch of its own, and these to a
// core.
const teamingNetwork = `
#  probe a1 a2 a3
#     \  |  | /
#      esx1        eno1 ── left ───┐
#                  eno2 ── right ──┼─ core ── outside
#                  eno3 ── third ──┘
name: teaming
title: beacon probing and load-based teaming
hosts:
  - name: esx1
    config:
%s
vms:
  - {name: probe, host: esx1, addresses: [10.7.0.3/24]}
  - {name: a1, host: esx1, addresses: [10.7.0.11/24]}
  - {name: a2, host: esx1, addresses: [10.7.0.12/24]}
  - {name: a3, host: esx1, addresses: [10.7.0.13/24]}
switches:
  - {name: left}
  - {name: right}
  - {name: third}
  - {name: core}
routers:
  - {name: outside, interfaces: [{device: eth0, mac: "02:00:00:00:02:09", addresses: [10.7.0.9/24]}]}
links:
  - {a: esx1/eno1, b: left/down}
  - {a: esx1/eno2, b: right/down}
  - {a: esx1/eno3, b: third/down}
  - {a: left/up, b: core/left}
  - {a: right/up, b: core/right}
  - {a: third/up, b: core/third}
  - {a: outside/eth0, b: core/out}
`

// teamingConfig is the host's configuration with a policy for the ports whose load is balanced.
func teamingConfig(policy string) string {
	return fmt.Sprintf(`switches:
  - name: lab
    kind: distributed
    upDelay: 100ms
    uplinks: [{name: uplink1, device: eno1}, {name: uplink2, device: eno2}, {name: uplink3, device: eno3}]
    portGroups:
      - {name: probed, teaming: {policy: explicit, active: [uplink1, uplink2, uplink3], failureDetection: beacon}}
      - {name: spread, teaming: {policy: %s, active: [uplink1, uplink2]}}
ports:
  - {name: probe, switch: lab, portGroup: probed, device: vm-probe, mac: "02:00:00:00:02:03"}
  - {name: a1, switch: lab, portGroup: spread, device: vm-a1, mac: "02:00:00:00:02:11"}
  - {name: a2, switch: lab, portGroup: spread, device: vm-a2, mac: "02:00:00:00:02:12"}
  - {name: a3, switch: lab, portGroup: spread, device: vm-a3, mac: "02:00:00:00:02:13"}
`, policy)
}

// uplinkSpeed is what the physical network carries behind each uplink, in bits per second, and the speed that the
// device reports to the agent.
const uplinkSpeed = 100e6

// senders are the guests that send the load.
func senders() []string { return []string{"a1", "a2", "a3"} }

// RunTeaming builds the lab, measures, and removes it, also when ctx ends on the way.
func RunTeaming(ctx context.Context, o Options) (_ *report.Report, err error) {
	if err := o.CheckTeaming(); err != nil {
		return nil, err
	}
	e := o.teamingEffort()
	s, err := buildTeaming(ctx, o, e)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.lab.Down()) }()
	rep := &report.Report{Name: TeamingName, Environment: report.Collect(time.Now()),
		Labs: topology.OfText(teamingText("originating-port"))}
	if o.has(beaconRow) {
		m := &measured{row: row{name: beaconRow, vm: probe, event: networkGone, out: true, in: true}}
		for n := range e.beacons {
			o.say(fmt.Sprintf("%s, round %d of %d", beaconRow, n+1, e.beacons))
			if err := s.beaconRound(ctx, m); err != nil {
				return nil, fmt.Errorf("%s, round %d: %w", beaconRow, n+1, err)
			}
		}
		m.reportBeacon(rep)
	}
	if o.has(loadRow) {
		l := &loaded{window: e.window}
		for n := range e.loads {
			o.say(fmt.Sprintf("%s, round %d of %d, windows of %v", loadRow, n+1, e.loads, e.window))
			if err := s.loadRound(ctx, l, e); err != nil {
				return nil, fmt.Errorf("%s, round %d: %w", loadRow, n+1, err)
			}
		}
		l.report(rep)
	}
	return rep, nil
}

// teamingText is the lab with that teaming policy, in YAML.
func teamingText(policy string) string {
	config := "      " + strings.ReplaceAll(strings.TrimSpace(teamingConfig(policy)), "\n", "\n      ")
	return fmt.Sprintf(teamingNetwork, config)
}

func buildTeaming(ctx context.Context, o Options, e teamingEffort) (*scene, error) {
	sc, err := scenario.Parse("teaming.yaml", []byte(teamingText("originating-port")), nil)
	if err != nil {
		return nil, err
	}
	l, err := lab.Build(ctx, sc, lab.Options{Name: fmt.Sprintf("te%d", os.Getpid()), RunDir: o.RunDir,
		Program: o.Program, Progress: o.say,
		Env: []string{"HEDDLE_LOAD_WINDOW=" + e.window.String(), fmt.Sprintf("HEDDLE_LOAD_SPEED=%g", uplinkSpeed)}})
	if err != nil {
		return nil, err
	}
	s := newScene(l, len(senders())+1)
	err = s.find(append(senders(), host, outside, far, "right", probe)...)
	if err == nil {
		pairs := [][2]string{{probe, outside}, {outside, probe}}
		for _, vm := range senders() {
			pairs = append(pairs, [2]string{vm, outside}, [2]string{outside, vm})
		}
		err = s.resolve(pairs...)
	}
	if err == nil {
		err = errors.Join(s.slow(far), s.slow("right"))
	}
	if err != nil {
		return nil, errors.Join(err, l.Down())
	}
	return s, nil
}

// TeamingRowNames are the names of the rows of teaming.
func TeamingRowNames() []string { return teamingRows() }
