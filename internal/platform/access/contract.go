package access

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/proto"

	"heddle/internal/api"
	"heddle/internal/api/wire"
)

// Contract holds calls to the contract, outside of all else: a request that is not known as a whole is refused, since
// its caller could rely on what would be ignored, and each error has its details.
func Contract(next connect.ServerFunc) connect.ServerFunc {
	return func(ctx context.Context, spec connect.Spec, stream connect.ServerStream) error {
		return api.Detailed(next(ctx, spec, understood{stream}))
	}
}

// understood is a call's stream whose requests are checked.
type understood struct{ connect.ServerStream }

// Receive reads a request.
func (u understood) Receive(m any) error {
	if err := u.ServerStream.Receive(m); err != nil {
		return err
	}
	p, ok := m.(proto.Message)
	if !ok {
		return nil
	}
	if what := wire.Unknown(p); what != "" {
		return connect.NewError(connect.CodeInvalidArgument, fmt.Sprintf("this controller does not know %s, which the "+
			"request has: the controller is older than the program that asks; update the controllers", what))
	}
	return nil
}

// Versioned refuses requests for another version of the contract than the controller's. Calls that are passed on to a
// host are the host's to judge.
func Versioned(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, hostsPath) {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set(api.VersionHeader, fmt.Sprint(api.Version))
		if !api.OtherVersion(w, r, "this controller speaks version %d of the protocol, the request version %q: use "+
			"programs of the controller's version") {
			next.ServeHTTP(w, r)
		}
	})
}
