package controller

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heddle/internal/identity"
	"heddle/internal/test/testkit"
)

// aToken is a token for controllers of some cluster.
func aToken(t *testing.T) string {
	t.Helper()
	key, err := identity.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	print, err := key.Fingerprint()
	if err != nil {
		t.Fatal(err)
	}
	return identity.NewControllerToken(print).Text()
}

// silent is the address of something that takes connections and says nothing.
func silent(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

// A controller that cannot join says what is wrong, where, and what to do, in one line, and has changed nothing: the
// same command works once that is put right.
func TestS103_AJoinThatFailsSaysWhy(t *testing.T) {
	web := httptest.NewUnstartedServer(http.NotFoundHandler())
	web.EnableHTTP2 = true
	web.Config.ErrorLog = log.New(io.Discard, "", 0)
	web.StartTLS()
	t.Cleanup(web.Close)
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	token := aToken(t)
	for _, c := range []struct {
		name, address, token string
		ends                 bool // the command is interrupted
		want                 []string
	}{
		{"no port", "controller1", token, false, []string{`"controller1" is no address`, "HOST:PORT"}},
		{"a closed port", testkit.Unused(t), token, false, []string{"no controller answers at ", "refused",
			"--listen"}},
		{"a wrong name", "controller1.invalid:7411", token, false,
			[]string{"no controller answers at controller1.invalid:7411", "lookup controller1.invalid", "--listen"}},
		{"a token that is none", "127.0.0.1:7411", "hc1.x", false, []string{"mistyped", "copy it again"}},
		{"a host's token", "127.0.0.1:7411", "hj1.x", false, []string{"mistyped"}},
		{"another server", web.Listener.Addr().String(), token, false,
			[]string{"the controller at " + web.Listener.Addr().String(), "token"}},
		{"a server without TLS", plain.Listener.Addr().String(), token, false, []string{"no controller answers at "}},
		{"interrupted", silent(t), token, true, []string{"interrupted", "nothing has changed here", "repeat"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := optionsIn(t, t.TempDir())
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.ends {
				cancel()
			}
			_, err := JoinOffline(ctx, o, Join{Controller: c.address, Token: c.token, Name: "c2"})
			if err == nil {
				t.Fatal("it has joined")
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than a line: %q", err)
			}
			if _, err := os.Stat(filepath.Join(o.Dir, stagedDir)); err == nil {
				t.Error("something is staged for the next start")
			}
		})
	}
}
