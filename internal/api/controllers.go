package api

import (
	"context"
	"errors"
	"io"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
)

// ControllerRow is one controller of a cluster.
type ControllerRow struct {
	Name string `json:"name"`
	ID   string `json:"id"`
	// Address is where agents find it, Peer where the other members of etcd do.
	Address string `json:"address"`
	Peer    string `json:"peer"`
	// Role is leader, voter or learner; none where it is no member of etcd.
	Role string `json:"role"`
	// State is up, stale or unreachable; Problem says why.
	State   string `json:"state"`
	Problem string `json:"problem"`
	Version string `json:"version"`
	// Hosts is how many are connected to it.
	Hosts int `json:"hosts"`
	// Lag is how many entries of the cluster's log it has yet to apply.
	Lag uint64 `json:"lag"`
	// Self: it is the one that was asked.
	Self bool `json:"self"`
}

// ControllerList are the controllers of a cluster.
type ControllerList struct {
	Controllers []ControllerRow `json:"controllers"`
	// Notes are about the cluster as a whole.
	Notes   []string `json:"notes"`
	Cluster string   `json:"cluster"`
	Epoch   int64    `json:"epoch"`
}

// ControllerTerms are those of a token by which a controller joins.
type ControllerTerms struct {
	// Lasts is how long the token can be used; 0 for an hour.
	Lasts time.Duration `json:"lasts"`
}

// JoinCluster says which cluster a controller joins, and by what right.
type JoinCluster struct {
	// Controller is HOST:PORT of any of its controllers.
	Controller string `json:"controller"`
	Token      string `json:"token"`
	// Name of the controller that joins; "" for the one that it has.
	Name string `json:"name"`
}

// JoinedCluster says what became of it.
type JoinedCluster struct {
	Cluster string   `json:"cluster"`
	Name    string   `json:"name"`
	Notes   []string `json:"notes"`
}

// RemovedController says what became of the cluster.
type RemovedController struct {
	Notes []string `json:"notes"`
}

// Controllers are the controllers of the cluster.
func (f *Fleet) Controllers(ctx context.Context) (*ControllerList, error) {
	out, err := call[ControllerList, controllerv1.ListControllersRequest, controllerv1.ListControllersResponse](ctx, f,
		f.members.ListControllers, nil)
	return &out, err
}

// ControllerToken makes a token by which one controller may join.
func (f *Fleet) ControllerToken(ctx context.Context, q ControllerTerms) (*JoinToken, error) {
	out, err := call[JoinToken, controllerv1.CreateControllerTokenRequest, controllerv1.CreateControllerTokenResponse](
		ctx, f, f.members.CreateControllerToken, q)
	return &out, err
}

// RemoveController takes a controller out of the cluster.
func (f *Fleet) RemoveController(ctx context.Context, name string) (*RemovedController, error) {
	out, err := call[RemovedController, controllerv1.RemoveControllerRequest, controllerv1.RemoveControllerResponse](
		ctx, f, f.members.RemoveController, struct {
			Name string `json:"name"`
		}{name})
	return &out, err
}

// ConfirmRestored says which hosts and tokens of a snapshot count again.
type ConfirmRestored struct {
	// Names are those of hosts, or ids of hosts and tokens.
	Names []string `json:"names"`
	All   bool     `json:"all"`
}

// RestoredIdentities are hosts and tokens of a snapshot.
type RestoredIdentities struct {
	// Confirmed are those that count again by this call, Waiting those that don't.
	Confirmed []RestoredIdentity `json:"confirmed"`
	Waiting   []RestoredIdentity `json:"waiting"`
	// Stopped says why some of those that were asked for wait still; "" where none does.
	Stopped string `json:"stopped,omitempty"`
}

// RestoredIdentity is a host or a token of a snapshot.
type RestoredIdentity struct {
	// Kind is "host" or "token".
	Kind string `json:"kind"`
	ID   string `json:"id"`
	// Name is that of the host, or of the token's owner.
	Name string `json:"name"`
}

// ConfirmRestored confirms hosts and tokens that count no more since the state was restored from a snapshot, and says
// which are left. It changes nothing where none is named.
func (f *Fleet) ConfirmRestored(ctx context.Context, q ConfirmRestored) (*RestoredIdentities, error) {
	out, err := call[RestoredIdentities, controllerv1.ConfirmRestoredRequest, controllerv1.ConfirmRestoredResponse](
		ctx, f, f.members.ConfirmRestored, q)
	return &out, err
}

// JoinCluster makes the controller part of another cluster.
func (f *Fleet) JoinCluster(ctx context.Context, q JoinCluster) (*JoinedCluster, error) {
	out, err := call[JoinedCluster, controllerv1.JoinClusterRequest, controllerv1.JoinClusterResponse](ctx, f,
		f.members.JoinCluster, q)
	return &out, err
}

// Snapshot writes the whole database, as of one revision, with a checksum at its end.
func (f *Fleet) Snapshot(ctx context.Context, to io.Writer) (size int64, err error) {
	stream, err := f.members.TakeSnapshot(ctx, &controllerv1.TakeSnapshotRequest{})
	if err != nil {
		return 0, f.explain(ctx, err)
	}
	defer stream.Close()
	for {
		m, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			return size, nil
		}
		if err != nil {
			return size, f.explain(ctx, err)
		}
		n, err := to.Write(m.GetPart())
		if size += int64(n); err != nil {
			return size, err
		}
	}
}
