package access

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"heddle/internal/platform/access/roles"
	"heddle/internal/platform/audit"
	"heddle/internal/platform/pki"
)

// answers is a server of a guard's, which reads what it is asked.
func (h *house) answers() *httptest.Server {
	h.t.Helper()
	s := httptest.NewUnstartedServer(h.Remote(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		}
	}), func(*http.Request) {}))
	s.EnableHTTP2 = true
	s.StartTLS()
	h.t.Cleanup(s.Close)
	return s
}

// posts sends a request of a call.
func (h *house) posts(s *httptest.Server, call, token string, body io.Reader) (status int) {
	h.t.Helper()
	q, err := http.NewRequest(http.MethodPost, s.URL+"/heddle.controller.v1."+call, body)
	if err != nil {
		h.t.Error(err)
		return 0
	}
	q.Header.Set("Content-Type", "application/json")
	if token != "" {
		q.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := s.Client().Do(q)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body) // the status says what became of it
	return resp.StatusCode
}

// slow sends requests whose bodies do not come to their end, and returns once the guard holds as many as it takes.
func (h *house) slow(s *httptest.Server, call, token string, room *places, want int) {
	h.t.Helper()
	ctx, cancel := context.WithCancel(h.t.Context())
	h.t.Cleanup(cancel)
	for range want + 20 {
		body, end := io.Pipe()
		context.AfterFunc(ctx, func() { _ = end.Close() })
		go h.posts(s, call, token, body)
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		room.mu.Lock()
		n := room.others
		room.mu.Unlock()
		if n >= want {
			return
		}
		if time.Now().After(end) {
			h.t.Fatalf("%d requests of %s are waited for", n, call)
		}
	}
}

// Requests that do not come hold no place of one that is answered: others, and who manages the cluster, are answered
// all the while, and so is who asks without a token.
func TestS135_WhoSendsSlowlyKeepsNobodyOut(t *testing.T) {
	h := newHouse(t)
	viewer := h.token(pki.APITerms{Name: "val", Role: roles.Viewer, Life: time.Hour})
	other := h.token(pki.APITerms{Name: "vic", Role: roles.Viewer, Life: time.Hour})
	admin := h.token(pki.APITerms{Name: "ada", Role: roles.Admin, Life: time.Hour})
	s := h.answers()
	h.slow(s, "AccessService/WhoAmI", viewer, h.receiving, h.receiving.each)
	h.slow(s, "AccessService/SignIn", "", h.opening, h.opening.address)
	for name, token := range map[string]string{"another viewer": other, "an admin": admin} {
		if got := h.posts(s, "FleetService/ListHosts", token, strings.NewReader("{}")); got != http.StatusOK {
			t.Errorf("%s is answered %d", name, got)
		}
	}
	if got := h.posts(s, "AccessService/WhoAmI", viewer, strings.NewReader("{}")); got != http.StatusTooManyRequests {
		t.Errorf("the one who sends slowly is answered %d", got)
	}
	if got := h.posts(s, "AccessService/GetSignIn", "", strings.NewReader("{}")); got != http.StatusOK {
		t.Errorf("who wants to sign in is answered %d", got)
	}
}

// Only the calls that have large bodies read them, within a sum.
func TestS136_LargeBodiesAreBounded(t *testing.T) {
	h := newHouse(t)
	network := h.token(pki.APITerms{Name: "nat", Role: roles.NetworkAdmin, Life: time.Hour})
	part := h.token(pki.APITerms{Name: "pat", Role: roles.NetworkAdmin, Life: time.Hour,
		Scopes: []roles.Scope{{Switch: "dvs", PortGroup: "web"}}})
	admin := h.token(pki.APITerms{Name: "ada", Role: roles.Admin, Life: time.Hour})
	s := h.answers()
	large := strings.Repeat("a", 1<<20)
	for name, c := range map[string]struct {
		call, token string
		want        int
	}{
		"a definition":           {"FleetService/ApplyDefinition", network, http.StatusOK},
		"a call that reads":      {"FleetService/ListHosts", network, http.StatusRequestEntityTooLarge},
		"a recorded call":        {"AccessService/SignOut", network, http.StatusRequestEntityTooLarge},
		"what they may not call": {"BackupService/ImportBackup", network, http.StatusRequestEntityTooLarge},
		"a backup":               {"BackupService/ImportBackup", admin, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			if got := h.posts(s, c.call, c.token, strings.NewReader(large)); got != c.want {
				t.Errorf("a megabyte is answered %d", got)
			}
		})
	}
	for token, want := range map[string]int{network: http.StatusOK, part: http.StatusTooManyRequests} {
		if got := h.posts(s, "FleetService/ApplyDefinition", token,
			strings.NewReader(strings.Repeat("a", partBody+1))); got != want {
			t.Errorf("more than a part's body is answered %d, want %d", got, want)
		}
	}
	if got := h.posts(s, "FleetService/ApplyDefinition", part, strings.NewReader(large)); got != http.StatusOK {
		t.Errorf("a part's definition is answered %d", got)
	}
	if !h.memory.TryAcquire(largeSum) || !h.partMemory.TryAcquire(partSum) { // nothing is kept of those before
		t.Fatal("large bodies that were answered take memory")
	}
	h.ReadTime = 50 * time.Millisecond
	if got := h.posts(s, "FleetService/ApplyDefinition", network,
		strings.NewReader(large)); got != http.StatusTooManyRequests {
		t.Errorf("beyond the sum it is answered %d", got)
	}
	if got := h.posts(s, "BackupService/ImportBackup", admin, strings.NewReader(large)); got != http.StatusOK {
		t.Errorf("an admin is answered %d then", got)
	}
}

// Which calls are answered by streams is known from the contracts, also of those that are passed on.
func TestFollows(t *testing.T) {
	for path, want := range map[string]bool{
		"/heddle.controller.v1.MoveService/MovePort":            true,
		"/heddle.controller.v1.FleetService/ListHosts":          false,
		"/hosts/esx1/heddle.agent.v1.EventService/FollowEvents": true,
		"/hosts/esx1/heddle.agent.v1.StateService/GetState":     false,
		"/hosts/esx%2f1/heddle.agent.v1.CaptureService/Capture": true,
		"/hosts/": false, "/metrics": false, "/heddle.agent.v1.Error/x": false,
	} {
		if follows(path) != want {
			t.Errorf("%s is answered by a stream: %v", path, !want)
		}
	}
}

// Refusals of one caller fill no log: a few lines stand for all of them, and those of others have room.
func TestS137_RefusalsOfACallerAreBounded(t *testing.T) {
	h := newHouse(t)
	for _, name := range []string{"val", "vic"} {
		_, record, err := pki.NewAPIToken(pki.APITerms{Name: name, Role: roles.Viewer, Life: time.Hour}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		ctx := with(t.Context(), h.Known(record, "192.0.2.1:1"))
		for range 1000 {
			if err := h.Whole(ctx, roles.Manage, "RemoveHost"); err == nil {
				t.Fatal("it is not refused")
			}
		}
		found, err := h.Audit.List(audit.Query{Who: name})
		if n := len(found.Entries); err != nil || n == 0 || n > 2*failBurst {
			t.Errorf("%d lines are recorded of %s, %v", n, name, err)
		}
	}
}
