package controlplane

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"

	"heddle/internal/api"
	"heddle/internal/lab/report"

	agentv1 "heddle/api/heddle/agent/v1"
	"heddle/api/heddle/agent/v1/agentv1connect"
)

const (
	// inStages are the stages of the changes that are measured, each watched for stageWait, all before the first one
	// for stageWatch.
	inStages              = "1,10%,100%"
	stages                = 3
	stageWait, stageWatch = 5 * time.Second, 2 * time.Second
)

// configured is how long a change in stages takes where the controller takes no time.
const configured = stages*stageWait + stageWatch

// counting answers for a host what it has counted: ports that send and are handed frames at one rate.
type counting struct {
	agentv1connect.UnimplementedStatsServiceHandler
	*host
}

// ListVitals implements agentv1connect.StatsServiceHandler.
func (c counting) ListVitals(context.Context, *agentv1.ListVitalsRequest) (*agentv1.ListVitalsResponse, error) {
	at := c.ticks()
	frames := uint64(time.Duration(at).Milliseconds())
	return &agentv1.ListVitalsResponse{Vitals: []*agentv1.Vitals{{Switch: "dvs", Sent: frames, Handed: frames,
		Ports: int32(min(c.count(), 1<<20)), ReadAt: at}}}, nil
}

// calls answers what controllers ask of the host.
func (h *host) calls() http.Handler {
	rpc := connect.NewServer()
	agentv1connect.RegisterStatsServiceHandler(rpc, counting{host: h})
	mux := http.NewServeMux()
	connecthttp.Mount(mux, rpc)
	return mux
}

// changeInStages makes a change again and again that hosts make one stage after the other.
func (m *measurement) changeInStages(ctx context.Context) error {
	for range m.Rounds {
		before, err := m.begin()
		if err != nil {
			return err
		}
		m.def.vlan++
		began := time.Now()
		out, err := m.process.Define(ctx, api.Define{File: "fleet.yaml", Content: m.def.text(),
			Stages: &api.InStages{Stages: inStages, Wait: stageWait, Watch: stageWatch}})
		if err != nil {
			return err
		}
		m.revision = out.Revision
		took, err := m.rolledOut(ctx, out.Rollout.ID, began)
		if err != nil {
			return err
		}
		m.staged.seconds = append(m.staged.seconds, took.Seconds())
		m.added = append(m.added, (took - configured).Seconds())
		if err := m.account(&m.staged, before); err != nil {
			return err
		}
		if err := m.check(); err != nil {
			return err
		}
	}
	return m.weigh()
}

// rolledOut waits until a rollout is done, and says how long after that time. It asks for the list of rollouts, since
// one with all its hosts takes the controller time that is not the rollout's.
func (m *measurement) rolledOut(ctx context.Context, id string, began time.Time) (time.Duration, error) {
	for {
		list, err := m.process.Rollouts(ctx)
		if err != nil {
			return 0, err
		}
		i := slices.IndexFunc(list, func(r api.Rollout) bool { return r.ID == id })
		if i < 0 {
			return 0, fmt.Errorf("the controller does not list rollout %s", id)
		}
		switch r := list[i]; {
		case r.State == api.RolloutDone:
			return time.Since(began), nil
		case r.State != api.RolloutRunning:
			return 0, fmt.Errorf("rollout %s is %s: %+v %s", id, r.State, r.Found, r.Note)
		case time.Since(began) > patience+configured:
			return 0, fmt.Errorf("rollout %s is at stage %d after %s: %s", id, r.Begun, time.Since(began), r.Note)
		}
		time.Sleep(4 * poll)
	}
}

// stagesRow says how much longer a change in stages took than its waits.
func (r *result) stagesRow() report.Row {
	return report.Row{{Name: "hosts", Value: r.hosts}, {Name: "work", Value: "added to the waits"},
		{Name: "added", Value: report.Summarise(r.added), Unit: report.Seconds},
		{Name: "added_samples", Value: r.added, Hidden: true}}
}
