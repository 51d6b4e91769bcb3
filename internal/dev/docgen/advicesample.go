package docgen

import (
	"fmt"
	"strings"
	"time"

	"heddle/internal/abi"
	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/cli/diagnose"
	"heddle/internal/diagnose/advise"
	"heddle/internal/diagnose/trace"
	"heddle/internal/model"
	"heddle/internal/observe/event"
	"heddle/internal/observe/sightings"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/spec"
)

// sampleForger is the port of the sample whose guest sends from another address; those of sampleOlder did before.
const sampleForger = 1

// sampleOlder are the ports whose findings are too old to be shown.
func sampleOlder() []int { return []int{2, 3} }

// adviceSample is what heddle advise prints on a host on which one guest sends from other addresses: the rules judge a
// snapshot, so that no word and no number of it can differ from what users see.
func adviceSample() (string, error) {
	s, err := sampleHost()
	if err != nil {
		return "", fmt.Errorf("make the sample of advise: %w", err)
	}
	var b strings.Builder
	if err := diagnose.WriteAdvice(&b, cli.Deps{}, advise.Examine(s), s.Now); err != nil {
		return "", fmt.Errorf("make the sample of advise: %w", err)
	}
	return b.String(), nil
}

// sampleHost has twelve VMs in one port group on two uplinks.
func sampleHost() (*advise.Snapshot, error) {
	const vms = 12
	var text strings.Builder
	text.WriteString("switches: [{name: lab, kind: distributed, uplinks: [{name: uplink1, device: eno1}, " +
		"{name: uplink2, device: eno2}], portGroups: [{name: web, vlan: {access: 10}}]}]\nports:\n")
	for i := range vms {
		fmt.Fprintf(&text, "- {name: vm%d/eth0, switch: lab, portGroup: web, device: tap%d, "+
			"mac: \"02:00:00:00:%02x:01\"}\n", i+1, i+1, i+1)
	}
	cfg, err := spec.Parse("heddle.yaml", []byte(text.String()))
	if err != nil {
		return nil, err
	}
	p, err := plan.Resolve(cfg, nil)
	if err != nil {
		return nil, err
	}
	now := time.Date(2026, 1, 5, 14, 7, 9, 0, time.Local) // which is printed in the local zone
	s := &advise.Snapshot{Now: now, Since: api.AdviseSince, State: &api.State{},
		Host: &trace.Host{Plan: p, Facts: plan.Facts{}, NewModel: model.New, File: "/etc/heddle/heddle.yaml",
			RunTime: map[string]spec.Port{}, Waiting: map[plan.PortID]problem.Problem{}}}
	for i, u := range p.Switches[0].Uplinks {
		s.Host.Facts[u.ID] = plan.Fact{Up: true, MTU: 1500, DeviceMAC: plan.MAC{2, 0, 0, 0, 0, byte(i)}}
		s.State.Uplinks = append(s.State.Uplinks, api.Uplink{Switch: "lab", Name: u.ID.Name, Device: u.Device,
			State: api.Up})
	}
	for _, q := range p.Switches[0].Ports {
		s.Host.Facts[q.ID] = plan.Fact{Up: true, MTU: 1500}
		s.State.Ports = append(s.State.Ports, api.Port{Switch: "lab", Name: q.ID.Name, Device: q.Device, State: api.Up})
		s.Stats = append(s.Stats, api.Stats{Switch: "lab", Name: q.ID.Name, PortGroup: q.PortGroup})
	}
	sampleForgeries(s)
	return s, nil
}

// sampleForgeries are what the guests sent from other addresses, as the counters and the ledger of dates have it.
func sampleForgeries(s *advise.Snapshot) {
	ledger := sightings.New()
	causes := advise.CausesOf(s.Host.Plan, s.Host.Facts, nil)
	note := func(ago time.Duration, port int, drops uint64) {
		if port > 0 {
			s.Stats[port-1].Drops = api.ReasonCounts{{Reason: abi.ReasonForgedTransmit.String(), Value: drops}}
		}
		ledger.Note(s.Now.Add(-ago), advise.Readings(nil, causes, s.Stats, nil))
	}
	note(24*time.Hour, 0, 0)
	for _, port := range sampleOlder() {
		note(3*time.Hour, port, 1)
	}
	note(8*time.Minute+29*time.Second, sampleForger, 1)
	note(2*time.Minute, sampleForger, 3)
	s.Seen = ledger.Seen()
	s.Events = []event.Event{{Kind: event.Violation, Switch: "lab", Port: s.Stats[sampleForger-1].Name,
		MAC: "02:00:00:00:09:09", Time: s.Now.Add(-2 * time.Minute)}}
}
