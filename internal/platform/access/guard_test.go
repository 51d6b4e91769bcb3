package access

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"heddle/api/heddle/controller/v1/controllerv1connect"
	"heddle/internal/identity"
	"heddle/internal/platform/access/roles"
	"heddle/internal/platform/audit"
	"heddle/internal/platform/pki"
)

// house is a guard with the tokens that a test gives out.
type house struct {
	*Guard
	t  *testing.T
	mu sync.Mutex
	by map[identity.TokenID]*pki.APIRecord
}

func newHouse(t *testing.T) *house {
	t.Helper()
	log, err := audit.Open(filepath.Join(t.TempDir(), "audit"), audit.DefaultBounds(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	h := &house{t: t, by: map[identity.TokenID]*pki.APIRecord{}}
	h.Guard = New(Options{Audit: log, Log: slog.New(slog.DiscardHandler), Now: time.Now,
		Token: func(id identity.TokenID) *pki.APIRecord {
			h.mu.Lock()
			defer h.mu.Unlock()
			return h.by[id]
		}})
	return h
}

func (h *house) token(terms pki.APITerms) string {
	h.t.Helper()
	token, record, err := pki.NewAPIToken(terms, time.Now())
	if err != nil {
		h.t.Fatal(err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.by[token.ID] = record
	return token.Text()
}

// What is under way with a token ends with it: when it is revoked, and when its time is over.
func TestGuard_ARequestEndsWithItsToken(t *testing.T) {
	for name, c := range map[string]struct {
		life   time.Duration
		revoke bool
		want   identity.TokenFault
	}{
		"revoked": {time.Hour, true, identity.Unknown},
		"expired": {200 * time.Millisecond, false, identity.Expired},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			text := h.token(pki.APITerms{Name: "ann", Role: roles.Viewer, Life: c.life})
			began, why := make(chan struct{}), make(chan error, 1)
			server := httptest.NewServer(h.Remote(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				close(began)
				<-r.Context().Done()
				why <- context.Cause(r.Context())
			}), func(*http.Request) {}))
			defer server.Close()
			q, err := http.NewRequest(http.MethodPost, server.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			q.Header.Set("Authorization", "Bearer "+text)
			go func() {
				if resp, err := http.DefaultClient.Do(q); err == nil {
					_ = resp.Body.Close()
				}
			}()
			<-began
			if c.revoke {
				h.mu.Lock()
				clear(h.by)
				h.mu.Unlock()
				h.Recheck()
			}
			if got := <-why; !errors.Is(got, &identity.TokenError{Fault: c.want}) {
				t.Errorf("it ended for %v", got)
			}
		})
	}
}

// Who may not look is refused, who may is recorded, with what became of it.
func TestGuard_Look(t *testing.T) {
	h := newHouse(t)
	for name, c := range map[string]struct {
		terms pki.APITerms
		may   bool
	}{
		"viewer":           {pki.APITerms{Name: "val", Role: roles.Viewer, Life: time.Hour}, false},
		"operator":         {pki.APITerms{Name: "oli", Role: roles.Operator, Life: time.Hour}, false},
		"viewer with look": {pki.APITerms{Name: "lou", Role: roles.Viewer, Look: true, Life: time.Hour}, true},
		"admin":            {pki.APITerms{Name: "ada", Role: roles.Admin, Life: time.Hour}, true},
	} {
		t.Run(name, func(t *testing.T) {
			_, record, err := pki.NewAPIToken(c.terms, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			ctx := with(t.Context(), h.Known(record, ""))
			done, err := h.Look(ctx, "Capture", nil, "host=esx1")
			if (err == nil) != c.may {
				t.Fatalf("looks: %v", err)
			}
			want := audit.Refused
			if c.may {
				done(nil)
				want = audit.Done
			}
			found, err := h.Audit.List(audit.Query{Who: c.terms.Name})
			if err != nil || len(found.Entries) != 1 || found.Entries[0].Result != want ||
				strings.Join(found.Entries[0].Objects, " ") != "host=esx1" {
				t.Errorf("recorded %+v, %v", found, err)
			}
		})
	}
	if _, err := h.Look(t.Context(), "Capture", nil); err == nil {
		t.Error("somebody looks of whom nothing is known")
	}
}

// Guesses from one network share a bound, and all networks together have one.
func TestThrottle(t *testing.T) {
	now := time.Unix(2e9, 0)
	th := newThrottle(now)
	within := 0
	for range 100 {
		if ok, _ := th.failed("[2001:db8::1]:1", now); ok {
			within++
		}
		if ok, _ := th.failed("[2001:db8::2]:2", now); ok { // the same network of 64 bits
			within++
		}
	}
	if within != failBurst {
		t.Errorf("%d of one network are within the bounds", within)
	}
	ok, times := th.failed("[2001:db8::3]:3", now.Add(failEvery))
	if !ok || times != 200-failBurst+1 {
		t.Errorf("later: %v, %d times", ok, times)
	}
	for i := range 3 * mostAddresses {
		if ok, _ := th.failed(netipOf(i), now.Add(failEvery)); ok {
			within++
		}
	}
	if within > allBurst+int(failEvery/allEvery) || len(th.by) > mostAddresses {
		t.Errorf("%d of all are within the bounds, %d addresses are kept", within, len(th.by))
	}
}

func netipOf(i int) string { return fmt.Sprintf("10.%d.%d.%d:9", i>>16&255, i>>8&255, i&255) }

// A host that asks to join where people are let in is told where hosts join, and not to send a person's token.
func TestGuard_WhoJoinsIsToldWhere(t *testing.T) {
	h := newHouse(t)
	s := httptest.NewServer(h.Remote(http.NotFoundHandler(), func(*http.Request) {}))
	t.Cleanup(s.Close)
	for _, path := range []string{controllerv1connect.HostServiceJoinHostProcedure,
		controllerv1connect.ControllerServiceJoinControllerProcedure} {
		t.Run(path, func(t *testing.T) {
			r, err := http.Post(s.URL+path, "application/json", strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			defer r.Body.Close()
			text, err := io.ReadAll(r.Body)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(text), "--listen, port 7411") || strings.Contains(string(text), "Bearer") {
				t.Errorf("the answer is %d %s", r.StatusCode, text)
			}
		})
	}
}
