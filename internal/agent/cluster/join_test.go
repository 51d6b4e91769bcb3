package cluster

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"heddle/internal/identity"
)

// A host that asks something which takes connections and says nothing says so, with where and what to do: whoever has
// typed a wrong port sees no more than that.
func TestJoin_WithoutAnAnswer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	token := identity.NewJoinToken(identity.Fingerprint{1}).Text()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err = Join(ctx, t.TempDir(), Request{Controller: l.Addr().String(), Token: token, Name: "esx1"})
	if err == nil {
		t.Fatal("it has joined")
	}
	for _, part := range []string{"no controller has answered at " + l.Addr().String(), "--listen, port 7411",
		"firewall", "repeat the command, with the same token"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
}
