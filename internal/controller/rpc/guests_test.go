package rpc

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/api/heddle/controller/v1/controllerv1connect"
	"heddle/internal/controller/hostwords"
	"heddle/internal/identity"
)

// What somebody without a certificate can have a controller hold at the hosts' port is bounded: the header of a
// request, and how many requests wait on a connection. A host joins all the while.
func TestS136_WhoShowsNoCertificateHoldsLittle(t *testing.T) {
	c := newController(t)
	c.define(clusterText)
	token := must(identity.ParseJoinToken(c.token()))(t)
	protocols := &http.Protocols{}
	protocols.SetHTTP2(true)
	transport := &http.Transport{TLSClientConfig: identity.JoinTLS(token, identity.NewClock(time.Now)),
		Protocols: protocols}
	t.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: transport}
	ask := func(body io.Reader, long string) (status int) {
		q := must(http.NewRequest(http.MethodPost, "https://"+c.address+
			controllerv1connect.HostServiceJoinHostProcedure, body))(t)
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("X-Long", long)
		resp, err := client.Do(q)
		if err != nil {
			return 0
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body) // the status says what became of it
		return resp.StatusCode
	}
	if got := ask(strings.NewReader("{}"), strings.Repeat("a", 60<<10)); got == http.StatusUnauthorized {
		t.Errorf("60 KB of header: %d", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var slow sync.WaitGroup
	t.Cleanup(func() { cancel(); slow.Wait() })
	refused := make(chan struct{})
	once := sync.OnceFunc(func() { close(refused) })
	for range 4 + 2 {
		body, end := io.Pipe()
		context.AfterFunc(ctx, func() { _ = end.Close() })
		slow.Go(func() {
			if ask(body, "") == http.StatusTooManyRequests {
				once()
			}
		})
	}
	<-refused
	c.joins("esx1")
}

// Reports that are large cost more than small ones, and beyond its part a host is read more slowly.
func TestS136_ReportsHaveARate(t *testing.T) {
	f, h := &fleet{}, &host{pace: newPace(), talk: hostwords.NewTalk()}
	h.report = &report{wire: make([]byte, paceBurst/8)}
	soon := impatient{t.Context()}
	report := &controllerv1.FollowSliceRequest{Change: &controllerv1.HostReportChange{}}
	n, began := 0, time.Now()
	for h.pace.wait(soon, f, h, report) == nil {
		n++
	}
	grown := int(time.Since(began).Seconds() * paceRate / (paceBurst / 8)) // where the machine is busy
	if n < 8 || n > 8+grown {
		t.Errorf("%d reports of an eighth of what is taken at once are taken at once, and %d later", n, grown)
	}
	if err := h.pace.wait(soon, f, h, &controllerv1.FollowSliceRequest{}); err != nil {
		t.Errorf("what is no report waits: %v", err)
	}
}

// impatient is a context that has a millisecond left, whenever it is asked.
type impatient struct{ context.Context }

func (impatient) Deadline() (time.Time, bool) { return time.Now().Add(time.Millisecond), true }
