package agent

import (
	"context"
	"os"
	"slices"
	"time"

	"heddle/internal/agent/definition"
	"heddle/internal/agent/flows"
	"heddle/internal/agent/held"
	"heddle/internal/agent/metrics"
	"heddle/internal/agent/migration"
	"heddle/internal/agent/view"
	"heddle/internal/api"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// answers answers queries, and changes nothing.
type answers struct {
	*shared
	definition *definition.Part
	inCluster  *inCluster
	ports      *ports
	attaching  *attaching
	chains     *chains
	reporter   *reporter
	teaming    *teaming
	holding    *held.Part
	flowing    *flows.Meter
	dated      *dated
	moving     *migration.Part

	losses    Losses
	abilities Abilities     // nil if devices can't be asked
	registry  *metrics.Host // the agent's counters, and what a scrape reads
	tracing   chan struct{} // holds a value while a trace runs
	stateDir  string
}

// State returns everything that is active, for the command line.
func (an *answers) State(ctx context.Context) (out *api.State, err error) {
	err = an.Do(ctx, func() error {
		out = an.view()
		return nil
	})
	return out, err
}

// flapping are the MACs that go to and fro between a port and other hosts.
func (an *answers) flapping(id plan.PortID) []api.FlappingMAC { return an.moving.FlappingOf(id) }

// settingsOf are what the definition sets for the static port that a run-time port is; none for another port.
func (an *answers) settingsOf(port string) (spec.PortSettings, bool) {
	if !an.definition.AnySettings() {
		return spec.PortSettings{}, false
	}
	return an.definition.SettingsOf(an.state.NICOf(port))
}

func (an *answers) view() *api.State { return an.source().State() }

// source returns what the views of the host are made from.
func (an *answers) source() view.Source {
	announcing := 0
	if an.teaming.announcer != nil {
		announcing = an.teaming.announcer.Waiting()
	}
	whole, _ := an.ports.whole(an.ports.file)
	return view.Source{
		Agent: api.AgentInfo{Name: an.name, Version: an.version, API: api.Version, PID: os.Getpid(),
			Started: an.started,
			Config:  an.state.Config.File, Warnings: slices.Concat(an.ports.unused, an.ports.warnings,
				texts(an.ports.misfits), an.definition.Lacks(), an.definition.KeptWarnings()), Announcing: announcing,
			Place: an.state.Place, Lookalikes: held.Lookalikes(an.dev, &an.state.Devices, an.name)},
		Config: an.Active().Config, File: whole, Plan: an.Active().Plan, Applied: an.Active().Applied,
		Remembered: an.state, Controller: an.definition.Config(), Settings: an.settingsOf,
		Problems: an.Active().Problems, Unattached: an.attaching.whyNotAttached, Before: an.chains.before,
		Refused: an.reporter.refused.Shown(), Device: an.holding.DeviceOf, Flapping: an.flapping,
		Speed: an.dev.Speed,
		Links: view.Links{Out: an.teaming.verdicts.Why, LAG: an.teaming.lags.Status, LLDP: an.teaming.neighboursOf,
			Outside: an.teaming.outside, Tree: an.teaming.treeOf},
		Now: time.Now(),
	}
}

// MACs returns the ports' own addresses and the learned ones.
func (an *answers) MACs(ctx context.Context) (out []api.MAC, err error) {
	err = an.Do(ctx, func() error {
		learned, err := an.kernel.MACs()
		if err != nil {
			return err
		}
		speakers, err := an.kernel.Speakers()
		out = view.MACs(an.Active().Plan, an.Active().Applied.Facts, learned, speakers)
		return err
	})
	return out, err
}
