package api

import (
	"context"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/api/heddle/controller/v1/controllerv1connect"
)

// InStages is how hosts make a change of the definition in stages (S102).
type InStages struct {
	// Stages as people write them: "1,10%,100%", "env=test,100%".
	Stages string `json:"stages"`
	// Wait is how long hosts are watched after each stage, 1 s to 24 h; Watch is how long they are before the first
	// one, 1 s to 1 h, 0 for a tenth of Wait, 1 s to 30 s.
	Wait  time.Duration `json:"wait,omitempty"`
	Watch time.Duration `json:"watch,omitempty"`
	// Halt is what it does by itself when it finds something: "stop" or "rollback".
	Halt string `json:"halt"`
	// By is a label whose hosts change together, or "random".
	By string `json:"by"`
}

// RolloutState is how a rollout stands.
type RolloutState string

// The states of rollouts. From RolloutDone on they are final.
const (
	RolloutRunning    RolloutState = "running"
	RolloutPaused     RolloutState = "paused"
	RolloutHalted     RolloutState = "halted" // by itself, since it found something
	RolloutTakingBack RolloutState = "taking-back"
	RolloutDone       RolloutState = "done"
	RolloutTakenBack  RolloutState = "taken-back" // by itself
	RolloutAborted    RolloutState = "aborted"    // taken back by a person
	RolloutSuperseded RolloutState = "superseded"
)

// Rollout is a change of the definition that hosts make in stages.
type Rollout struct {
	ID    string       `json:"id"`
	State RolloutState `json:"state"`
	// Revision is that with the change, Base that of before.
	Revision int64          `json:"revision"`
	Base     int64          `json:"base"`
	Stages   []RolloutStage `json:"stages"`
	// Begun is how many stages have begun; 0 while the hosts are watched as they are.
	Begun int           `json:"begun"`
	Wait  time.Duration `json:"wait"`
	Watch time.Duration `json:"watch"`
	Halt  string        `json:"halt"`
	// By is the label whose hosts change together; "" for none.
	By      string    `json:"by"`
	Who     string    `json:"who"`
	Message string    `json:"message"`
	Started time.Time `json:"started,omitzero"`
	// Settled is since when all connected hosts of the stages that have begun have the change; zero while some lack it.
	Settled time.Time `json:"settled,omitzero"`
	Ended   time.Time `json:"ended,omitzero"`
	// Found is what it saw when it halted or was taken back.
	Found []RolloutFinding `json:"found"`
	// Driver is the name of the controller that drives it; "" while none does.
	Driver string `json:"driver"`
	// Note says what it waits for, or who paused it.
	Note string `json:"note"`
	// Switches that the change concerns; "*" for all.
	Switches []string `json:"switches"`
	// Left is how long the hosts of the stage are watched yet.
	Left time.Duration `json:"left"`
}

// RolloutStage is a stage of a rollout.
type RolloutStage struct {
	// Stage as it was asked for.
	Stage string `json:"stage"`
	// Hosts are those that change with it, of a rollout that is open; Count is how many.
	Hosts []RolloutHost `json:"hosts"`
	Count int           `json:"count"`
}

// RolloutHost is a host of a stage.
type RolloutHost struct {
	Name string `json:"name"`
	// State is "changed", "changing", "away" (it gets the version of its stage when it is back), "failed" or
	// "unchanged".
	State string `json:"state"`
	// Problems say why it is not changed.
	Problems []string `json:"problems"`
}

// RolloutFinding is something that hosts with the change have and the others do not; Host is "" for a summary.
type RolloutFinding struct {
	Host string `json:"host"`
	What string `json:"what"`
}

// rolloutCalls are those about changes in stages.
type rolloutCalls struct {
	fleet *Fleet
	rpc   controllerv1connect.RolloutServiceClient
}

// oneRollout is an answer with a rollout.
type oneRollout struct {
	Rollout Rollout `json:"rollout"`
}

// rolloutOf names a rollout; "" for the only one that is open.
type rolloutOf struct {
	ID string `json:"id"`
}

// Rollouts lists rollouts, the newest first.
func (r rolloutCalls) Rollouts(ctx context.Context) ([]Rollout, error) {
	out, err := call[struct {
		Rollouts []Rollout `json:"rollouts"`
	}, controllerv1.ListRolloutsRequest, controllerv1.ListRolloutsResponse](ctx, r.fleet, r.rpc.ListRollouts, nil)
	return out.Rollouts, err
}

// Rollout returns one with its hosts; "" for the only one that is open, or else the newest.
func (r rolloutCalls) Rollout(ctx context.Context, id string) (*Rollout, error) {
	out, err := call[oneRollout, controllerv1.GetRolloutRequest, controllerv1.GetRolloutResponse](ctx, r.fleet,
		r.rpc.GetRollout, rolloutOf{id})
	return &out.Rollout, err
}

// PauseRollout keeps the next stage from beginning.
func (r rolloutCalls) PauseRollout(ctx context.Context, id string) (*Rollout, error) {
	out, err := call[oneRollout, controllerv1.PauseRolloutRequest, controllerv1.PauseRolloutResponse](ctx, r.fleet,
		r.rpc.PauseRollout, rolloutOf{id})
	return &out.Rollout, err
}

// ResumeRollout goes on with one that was paused or has halted; all gives all hosts the change now.
func (r rolloutCalls) ResumeRollout(ctx context.Context, id string, all bool) (*Rollout, error) {
	out, err := call[oneRollout, controllerv1.ResumeRolloutRequest, controllerv1.ResumeRolloutResponse](ctx, r.fleet,
		r.rpc.ResumeRollout, struct {
			ID  string `json:"id"`
			All bool   `json:"all"`
		}{id, all})
	return &out.Rollout, err
}

// AbortRollout takes the change back from all hosts that have it. force does so also where ports use what it added.
func (r rolloutCalls) AbortRollout(ctx context.Context, id, message string, force bool) (*Rollout, error) {
	out, err := call[oneRollout, controllerv1.AbortRolloutRequest, controllerv1.AbortRolloutResponse](ctx, r.fleet,
		r.rpc.AbortRollout, struct {
			ID      string `json:"id"`
			Message string `json:"message"`
			Force   bool   `json:"force"`
		}{id, message, force})
	return &out.Rollout, err
}
