package rpc

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/api/heddle/controller/v1/controllerv1connect"
	"heddle/internal/controller/definition"
	"heddle/internal/platform/store"
)

// countedPast counts who reads the history, and can have the first one wait.
type countedPast struct {
	definition.Past
	reads, now, most atomic.Int64
	hold             atomic.Pointer[held]
}

// held is one who reads, and waits until they may go on.
type held struct{ in, goOn chan struct{} }

// On implements definition.Past: each definition that is made of records begins with it.
func (p *countedPast) On(ctx context.Context, base int64) (*store.Record, error) {
	p.reads.Add(1)
	now := p.now.Add(1)
	defer p.now.Add(-1)
	for was := p.most.Load(); now > was && !p.most.CompareAndSwap(was, now); was = p.most.Load() {
	}
	if h := p.hold.Swap(nil); h != nil {
		close(h.in)
		<-h.goOn
	}
	return p.Past.On(ctx, base)
}

// However many earlier definitions somebody who sees one port group asks for at once, each is read once, by one at a
// time; an admin who asks for others meanwhile does not wait.
func TestS189_AnEarlierDefinitionIsReadOnce(t *testing.T) {
	c := newController(t)
	counted := &countedPast{Past: c.Past}
	c.Past = counted
	f := answersAt(t, c)
	var all []int64
	for i := range 6 {
		all = append(all, c.changed(large(0, 3, 10+i), ""))
	}
	history := func(p *person) controllerv1connect.HistoryServiceClient {
		return controllerv1connect.NewHistoryServiceClient(connect.NewClient(connecthttp.NewTransport(p.http,
			"https://"+f.address, connecthttp.WithCompressors())))
	}
	viewer, _ := f.scoped("part", controllerv1.AccessRole_ACCESS_ROLE_VIEWER, "dvs/g0001")
	asks, admin := history(viewer), history(f.admin())
	first := &held{in: make(chan struct{}), goOn: make(chan struct{})}
	counted.hold.Store(first)
	counted.reads.Store(0)
	var running sync.WaitGroup
	for range 16 {
		running.Go(func() {
			out, err := asks.CompareDefinitions(t.Context(), &controllerv1.CompareDefinitionsRequest{From: all[0],
				To: all[1]})
			if err != nil || len(out.GetObjects()) != 1 || out.GetObjects()[0].GetName() != "dvs/g0001" {
				t.Errorf("compared: %v, %v", out, err)
			}
		})
	}
	<-first.in
	f.await("the others wait", func() bool { return f.reading.Waiting() == 15 })
	if _, err := admin.CompareDefinitions(t.Context(), &controllerv1.CompareDefinitionsRequest{From: all[2],
		To: all[3]}); err != nil { // while the viewer's first question is still being answered
		t.Errorf("an admin: %v", err)
	}
	close(first.goOn)
	running.Wait()
	if n, most := counted.reads.Load(), counted.most.Load(); n != 4 || most != 2 {
		t.Errorf("%d definitions were read, %d at a time; want 4, the viewer's and the admin's at a time", n, most)
	}
	out, err := asks.GetPastDefinition(t.Context(), &controllerv1.GetPastDefinitionRequest{Revision: all[1]})
	if err != nil || out.GetContent() == "" || counted.reads.Load() != 4 {
		t.Errorf("read again after %d: %v", counted.reads.Load(), err)
	}
}
