package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"connectrpc.com/connect/v2"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/fanout"
	"heddle/internal/platform/rpcerrors"
	"heddle/internal/platform/store"
	"heddle/internal/slice"
	"heddle/internal/spec/printable"
)

// A host that a version of the definition cut off from its controllers goes back to the version before (S81). It is not
// sent that version again until somebody changes what concerns the host, or wants it to try again.

// retry is a version that a host shall try again, and how often it had gone back from it by then: it is tried once.
type retry struct {
	Hash  []byte `json:"hash"`
	Times int64  `json:"times"`
}

// mostWhy bounds the reason that is kept of a host, in bytes.
const mostWhy = 500

// revertedBy is what a host reports that it went back from; nil for nothing.
func revertedBy(r *controllerv1.HostReport) *controllerv1.RevertedSlice {
	said := r.GetReverted()
	if len(said.GetVersion().GetHash()) != len(slice.Hash{}) {
		return nil
	}
	return &controllerv1.RevertedSlice{Version: said.GetVersion(), Times: said.GetTimes(),
		Why: printable.Short(said.GetWhy(), mostWhy)}
}

// PingController answers a host that asks whether it reaches its controllers.
func (*Server) PingController(ctx context.Context, _ *controllerv1.PingControllerRequest) (
	*controllerv1.PingControllerResponse, error) {
	if _, err := peerOf(ctx); err != nil {
		return nil, err
	}
	return &controllerv1.PingControllerResponse{}, nil
}

// wentBackFrom reports whether it is that content from which the host went back. The caller holds the lock.
func (h *host) wentBackFrom(set *slice.Set) bool {
	hash := set.Hash()
	return h.reverted != nil && bytes.Equal(h.reverted.GetVersion().GetHash(), hash[:])
}

// mayTryAgain reports whether somebody wants the host to try again what it went back from. The caller holds the lock.
func (h *host) mayTryAgain() bool {
	r := h.doc.Retry
	return r != nil && bytes.Equal(r.Hash, h.reverted.GetVersion().GetHash()) && h.reverted.GetTimes() <= r.Times
}

// whyReverted says it to people. The caller holds the lock.
func (h *host) whyReverted() string {
	return fmt.Sprintf("revision %d cut it off from its controllers, and it went back: %s; change the definition, or "+
		"try it again with heddle host retry %s", h.reverted.GetVersion().GetRevision(), h.reverted.GetWhy(),
		h.doc.Name)
}

// RetryHost has a host try again what it went back from. The wish is in the store, so that the controller that has the
// host's connection reads it there, whichever that is.
func (p people) RetryHost(ctx context.Context, q *controllerv1.RetryHostRequest) (*controllerv1.RetryHostResponse,
	error) {
	o, ok := p.Store.Get(store.Key{Kind: store.KindHost, Name: q.GetName()})
	if !ok {
		return nil, connect.NewError(connect.CodeNotFound,
			fmt.Sprintf("the cluster has no host %q: see heddle host list", q.GetName()))
	}
	there := p.askHosts(ctx, &controllerv1.GetHostsHereRequest{Names: []string{q.GetName()}})
	wish, revision, err := p.fleet.retry(o.ID, there)
	if err != nil {
		return nil, err
	}
	var doc hostDoc
	if err := json.Unmarshal(o.Doc, &doc); err != nil {
		return nil, err
	}
	doc.Retry = wish
	text, err := rewritten(o, doc)
	if err != nil {
		return nil, err
	}
	_, err = p.Store.Write(ctx, []store.Change{{Key: o.Key, Doc: text, IfVersion: o.Version}})
	if err != nil {
		return nil, rpcerrors.OfStore(err)
	}
	p.Log.Info("a host is to try again what it went back from", "host", q.GetName(), "revision", revision)
	return &controllerv1.RetryHostResponse{Revision: revision}, nil
}

// retry is what a host is to try again.
func (f *fleet) retry(id string, there *fanout.Answers) (*retry, int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.hosts[id]
	if h == nil {
		return nil, 0, rpcerrors.Removed()
	}
	if r := there.Hosts[id].GetReverted(); h.conn == nil && r != nil {
		h.reverted = r
	}
	set, err := f.target(h)
	if err != nil {
		return nil, 0, err
	}
	if !h.wentBackFrom(set) {
		return nil, 0, connect.NewError(connect.CodeFailedPrecondition, fmt.Sprintf("host %s has not gone back from "+
			"the newest definition: there is nothing to try again (heddle host list)", h.doc.Name))
	}
	return &retry{h.reverted.GetVersion().GetHash(), h.reverted.GetTimes()}, f.revision, nil
}
