package api

import (
	"context"
	"time"

	"heddle/internal/host/reach"
	"heddle/internal/observe/undone"
)

// TrialState is the state of a change that affects the path to the host's own addresses (S81).
type TrialState string

// The states of a trial.
const (
	TrialPlanned  TrialState = "planned"  // a dry run: nothing was done
	TrialAsking   TrialState = "asking"   // made; those who answered before must answer again
	TrialConfirm  TrialState = "confirm"  // made; nobody can be asked, and the operator must confirm
	TrialKept     TrialState = "kept"     // it stays
	TrialReverted TrialState = "reverted" // undone: everything is as it was before
)

// Trial describes how a change that affects the path to the host's own addresses is tried.
type Trial struct {
	State TrialState `json:"state"`
	// Change is the request: "apply /etc/heddle/heddle.yaml".
	Change string `json:"change"`
	// AtRisk are the interfaces that it affects, and what changes for them.
	AtRisk []reach.Risk `json:"atRisk"`
	// Asked are those who answered before the change, and which of them have answered since; empty if nobody did.
	Asked []reach.Ask `json:"asked"`
	// Deadline is until when it may stay unconfirmed; zero once it is decided.
	Deadline time.Time `json:"deadline,omitzero"`
	// Reason describes for people why it was undone, or why the change of a dry run would be refused; ReasonCode is the
	// same for programs.
	Reason     string      `json:"reason,omitempty"`
	ReasonCode undone.Code `json:"reasonCode,omitempty"`
}

// Window is how long a change that affects the path to the host's own addresses may stay unconfirmed. It is required if
// nobody can be asked; otherwise 0 uses the agent's default.
type Window struct {
	ConfirmWithin time.Duration `json:"confirmWithin,omitempty"`
}

// TrialService has the calls about changes on trial.
type TrialService interface {
	// Trial returns the change that is on trial, or the last one.
	Trial(context.Context) (*Trial, error)
	// ConfirmChange keeps the change that is on trial.
	ConfirmChange(context.Context) (*Trial, error)
}
