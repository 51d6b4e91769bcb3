package api

import (
	"context"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/api/heddle/controller/v1/controllerv1connect"
)

// RootStage is how far a rotation of the root is.
type RootStage string

// The stages.
const (
	RootSteady    RootStage = "steady"
	RootAnnounced RootStage = "announced"
	RootSwitched  RootStage = "switched"
)

// RootStep is a step of a rotation.
type RootStep string

// The steps.
const (
	RootAnnounce RootStep = "announce"
	RootSwitch   RootStep = "switch"
	RootFinish   RootStep = "finish"
	RootCancel   RootStep = "cancel"
)

// Root is by which root the hosts, controllers and people of a cluster are known.
type Root struct {
	Stage RootStage `json:"stage"`
	// Changed is when the last step of a rotation was made.
	Changed time.Time `json:"changed"`
	// Roots, the one that issues first.
	Roots []RootCertificate `json:"roots"`
	// Waiting are the hosts for which the next step comes too early.
	Waiting []string `json:"waiting"`
}

// RootCertificate is one root.
type RootCertificate struct {
	Fingerprint string `json:"fingerprint"`
	// Issues: it signs certificates now.
	Issues bool      `json:"issues"`
	Ends   time.Time `json:"ends"`
}

// rootCalls are those of the root.
type rootCalls struct {
	fleet *Fleet
	rpc   controllerv1connect.RootServiceClient
}

// Root says which roots there are.
func (r rootCalls) Root(ctx context.Context) (*Root, error) {
	out, err := call[Root, controllerv1.GetRootRequest, controllerv1.GetRootResponse](ctx, r.fleet, r.rpc.GetRoot, nil)
	return &out, err
}

// RotateRoot makes one step of a rotation.
func (r rootCalls) RotateRoot(ctx context.Context, step RootStep, force bool) (*Root, error) {
	out, err := call[struct {
		Root Root `json:"root"`
	}, controllerv1.RotateRootRequest, controllerv1.RotateRootResponse](ctx, r.fleet, r.rpc.RotateRoot, struct {
		Step  RootStep `json:"step"`
		Force bool     `json:"force"`
	}{step, force})
	return &out.Root, err
}
