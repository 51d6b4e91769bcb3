package rpc

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"heddle/api/heddle/controller/v1/controllerv1connect"
	"heddle/internal/identity"
)

// What a host can make the controller read at a time is bounded, and its neighbours notice nothing (S104).
func TestS104_AHostHasABoundedNumberOfStreams(t *testing.T) {
	var a allowance
	ask := func(kind identity.Kind, id, path string, size int) (leave func(), read int64, err error) {
		t.Helper()
		ctx := context.WithValue(t.Context(), callerKey{}, caller{peer: &identity.Peer{
			Name: identity.Name{Kind: kind, ID: id}}})
		r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(strings.Repeat("a", size)))
		leave, err = a.bound(ctx, httptest.NewRecorder(), r)
		if err == nil {
			read, _ = io.Copy(io.Discard, r.Body) // ends at the bound
		}
		return leave, read, err
	}
	const renew = controllerv1connect.HostServiceRenewHostProcedure
	for _, follow := range []string{controllerv1connect.HostServiceFollowSliceProcedure,
		controllerv1connect.HostServiceFollowSegmentsProcedure, controllerv1connect.HostServiceFollowProbesProcedure} {
		var leaves []func()
		for range mostFollowing {
			leave, read, err := ask(identity.Host, "h1", follow, 2*guestBody)
			if err != nil || read != 2*guestBody {
				t.Fatalf("%s is refused, or cut at %d: %v", follow, read, err)
			}
			leaves = append(leaves, leave)
		}
		if _, _, err := ask(identity.Host, "h1", follow, 0); err == nil {
			t.Errorf("%s: a host has one stream more", follow)
		}
		if _, _, err := ask(identity.Host, "h2", follow, 0); err != nil {
			t.Errorf("%s: another host is refused: %v", follow, err)
		}
		leaves[0]()
		if _, _, err := ask(identity.Host, "h1", follow, 0); err != nil {
			t.Errorf("%s: after the end of a stream: %v", follow, err)
		}
	}
	if _, read, err := ask(identity.Host, "h1", renew, 2*guestBody); err != nil || read != guestBody {
		t.Errorf("beside its slice a host sends %d bytes: %v", read, err)
	}
	if _, read, err := ask(identity.Controller, "c2", renew, 2*guestBody); err != nil || read != 2*guestBody {
		t.Errorf("a controller sends %d bytes: %v", read, err)
	}
}
