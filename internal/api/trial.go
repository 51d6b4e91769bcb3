package api

import (
	"context"
	"time"

	"heddle/internal/host/reach"
	"heddle/internal/observe/undone"
)

// TrialState is where a change stands that concerns the way to the host's own addresses (S81).
type TrialState string

// The states of a trial.
const (
	TrialPlanned  TrialState = "planned"  // a dry run: nothing was done
	TrialAsking   TrialState = "asking"   // made; those who answered before have yet to answer again
	TrialConfirm  TrialState = "confirm"  // made; nobody can be asked, and the operator has yet to confirm
	TrialKept     TrialState = "kept"     // it stays
	TrialReverted TrialState = "reverted" // taken back: everything is as it was before
)

// Trial is how a change is tried that concerns the way to the host's own addresses.
type Trial struct {
	State TrialState `json:"state"`
	// Change is what was asked for: "apply /etc/heddle/heddle.yaml".
	Change string `json:"change"`
	// AtRisk are the interfaces that it affects, and what changes for them.
	AtRisk []reach.Risk `json:"atRisk"`
	// Asked answered before the change, and who of them has answered since; empty where nobody did.
	Asked []reach.Ask `json:"asked"`
	// Deadline is until when it may go unconfirmed; zero when it is decided.
	Deadline time.Time `json:"deadline,omitzero"`
	// Reason says to people why it was taken back, or why the change of a dry run would be refused; ReasonCode to
	// programs.
	Reason     string      `json:"reason,omitempty"`
	ReasonCode undone.Code `json:"reasonCode,omitempty"`
}

// Window is how long a change may go unconfirmed that concerns the way to the host's own addresses. It is needed where
// nobody can be asked; 0 otherwise takes the agent's own.
type Window struct {
	ConfirmWithin time.Duration `json:"confirmWithin,omitempty"`
}

// TrialService is what an agent answers about changes that are tried.
type TrialService interface {
	// Trial is the change that is being tried, or the last one.
	Trial(context.Context) (*Trial, error)
	// ConfirmChange keeps the change that is being tried.
	ConfirmChange(context.Context) (*Trial, error)
}
