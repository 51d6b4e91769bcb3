package rpc

import (
	"context"
	"slices"
	"sync"
	"time"

	"connectrpc.com/connect/v2"

	agentv1 "heddle/api/heddle/agent/v1"
	"heddle/api/heddle/agent/v1/agentv1connect"
	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/addresses"
	"heddle/internal/controller/definition"
	"heddle/internal/controller/impact"
	"heddle/internal/controller/inventory"
	"heddle/internal/platform/access"
	"heddle/internal/platform/peers"
	"heddle/internal/platform/rpcerrors"
	"heddle/internal/slice"
)

// Bounds of asking hosts what a change would newly lose there.
const (
	// foreseeTime is for all hosts of a controller, foreseeOne for one of them.
	foreseeTime = 8 * time.Second
	foreseeOne  = 6 * time.Second
	// foreseeAtOnce is how many hosts are asked at the same time.
	foreseeAtOnce = 128
)

// foreseer asks hosts what a change of the definition would newly lose of what their ports sent lately.
type foreseer struct{ *Server }

// everywhere asks all hosts that a change concerns, wherever they are connected. Who does not see all of the cluster
// gets nil: the answer names what others' ports send.
func (f foreseer) everywhere(ctx context.Context, q *controllerv1.ApplyDefinitionRequest, after *inventory.Inventory,
	g *addresses.Grant, concerned []string) *controllerv1.ForeseenByHosts {
	if !access.GrantedTo(ctx).SeesAll() {
		return nil
	}
	if len(concerned) == 0 {
		return &controllerv1.ForeseenByHosts{}
	}
	there := make(chan []peers.Answer[*controllerv1.ForeseeHereResponse], 1)
	go func() {
		there <- peers.AskOthers(ctx, f.Roster, foreseeTime+peers.AskTime,
			func(ctx context.Context, k *peers.Link) (*controllerv1.ForeseeHereResponse, error) {
				return k.ForeseeHere(ctx, &controllerv1.ForeseeHereRequest{Request: q})
			})
	}()
	here := f.here(ctx, after, g)
	sum, asked := &impact.Sum{}, map[string]bool{}
	parts := []*controllerv1.ForeseeHereResponse{here}
	for _, a := range <-there {
		parts = append(parts, a.Got)
	}
	for _, part := range parts {
		for _, name := range part.GetAsked() {
			asked[name] = true
		}
		sum.Join(part.GetForeseen())
	}
	for _, name := range concerned {
		if !asked[name] {
			sum.Lack(name, "it is not connected to a controller that answers")
		}
	}
	return sum.Answer()
}

// ForeseeHere asks the hosts that are connected here.
func (o others) ForeseeHere(ctx context.Context, q *controllerv1.ForeseeHereRequest) (
	*controllerv1.ForeseeHereResponse, error) {
	if _, err := controllerOf(ctx); err != nil {
		return nil, err
	}
	p := people(o)
	if err := p.Store.Sync(ctx); err != nil {
		return nil, rpcerrors.OfStore(err)
	}
	source := p.sourceOf(q.GetRequest())
	if err := source.Parse(ctx); err != nil {
		return nil, err
	}
	have, _ := definition.Stored(p.Store)
	want, err := source.Wanted(have)
	if err != nil {
		return nil, err
	}
	after, err := inventory.New(want.Next)
	if err != nil {
		return nil, err
	}
	p.fleet.mu.Lock()
	granted, _ := addressing{p.fleet}.grant(after, addressing{p.fleet}.members(), nil)
	p.fleet.mu.Unlock()
	return foreseer(p).here(ctx, after, granted), nil
}

// foreseeing is what one host is asked.
type foreseeing struct {
	host string
	q    *agentv1.ForeseeRequest
	// why it can't be asked; "" if it can.
	why string
}

// here asks the hosts that are connected here, many at the same time.
func (f foreseer) here(ctx context.Context, after *inventory.Inventory,
	g *addresses.Grant) *controllerv1.ForeseeHereResponse {
	list := f.questions(after, g)
	out, sum := &controllerv1.ForeseeHereResponse{}, &impact.Sum{}
	ctx, cancel := context.WithTimeout(ctx, foreseeTime)
	defer cancel()
	next := make(chan foreseeing)
	var mu sync.Mutex
	var all sync.WaitGroup
	for range min(foreseeAtOnce, len(list)) {
		all.Go(func() {
			for one := range next {
				got, why := f.ask(ctx, one)
				mu.Lock()
				if out.Asked = append(out.Asked, one.host); why != "" {
					sum.Lack(one.host, why)
				} else {
					sum.Add(one.host, got)
				}
				mu.Unlock()
			}
		})
	}
	for _, one := range list {
		next <- one
	}
	close(next)
	all.Wait()
	out.Foreseen = sum.Answer()
	return out
}

// ask asks one host, or says why it has no answer.
func (f foreseer) ask(ctx context.Context, one foreseeing) (got *agentv1.Foreseen, why string) {
	switch {
	case one.why != "":
		return nil, one.why
	case ctx.Err() != nil:
		return nil, "there was no time left for it"
	}
	ctx, cancel := context.WithTimeout(ctx, foreseeOne)
	defer cancel()
	err := callAgent(ctx, f.Server, one.host, func(ctx context.Context, c *connect.Client) error {
		a, err := agentv1connect.NewChangeServiceClient(c).Foresee(ctx, one.q)
		got = a.GetForeseen()
		return err
	})
	switch code, text := rpcerrors.CodeAndText(err); code {
	case 0:
		return got, ""
	case connect.CodePermissionDenied, connect.CodeUnimplemented:
		return nil, "its agent is of an earlier version and can't say"
	case connect.CodeDeadlineExceeded, connect.CodeUnavailable, connect.CodeCanceled:
		return nil, "it did not answer in time"
	default:
		return nil, text
	}
}

// questions are the changes of the slices of hosts that are connected here.
func (f foreseer) questions(after *inventory.Inventory, g *addresses.Grant) (list []foreseeing) {
	f.fleet.mu.Lock()
	defer f.fleet.mu.Unlock()
	shared := map[[2]slice.Hash]slice.Change{}
	for _, h := range f.fleet.sorted() {
		if h.conn == nil {
			continue
		}
		was, err := f.fleet.target(h)
		if err != nil {
			list = append(list, foreseeing{host: h.doc.Name, why: err.Error()})
			continue
		}
		will, _, err := contents{f.fleet}.sliceOf(after, h, g.Of(f.fleet.addresses, h.doc.Name))
		switch {
		case err != nil:
			list = append(list, foreseeing{host: h.doc.Name, why: err.Error()})
		case was.Hash() == will.set.Hash():
		case h.active.known && h.active.hash != was.Hash():
			list = append(list, foreseeing{host: h.doc.Name, why: "it does not have the present definition active"})
		default:
			list = append(list, foreseeing{host: h.doc.Name, q: asked(was, will.set, shared)})
		}
	}
	return list
}

// asked is the request about the change from one slice to another. What hosts share is compared once.
func asked(was, will *slice.Set, shared map[[2]slice.Hash]slice.Change) *agentv1.ForeseeRequest {
	ownWas, baseWas := was.Parts()
	ownWill, baseWill := will.Parts()
	k := [2]slice.Hash{baseWas.Hash(), baseWill.Hash()}
	c, ok := shared[k]
	if !ok {
		c = slice.Between(baseWas, baseWill)
		shared[k] = c
	}
	own := slice.Between(ownWas, ownWill)
	from, to := was.Hash(), will.Hash()
	q := &agentv1.ForeseeRequest{Base: from[:], Next: to[:]}
	for _, o := range slices.Concat(c.Put, own.Put) {
		q.Put = append(q.Put, &agentv1.ForeseeObject{Kind: string(o.Kind), Name: o.Name, Doc: string(o.Doc)})
	}
	for _, o := range slices.Concat(c.Removed, own.Removed) {
		q.Removed = append(q.Removed, &agentv1.ForeseeObject{Kind: string(o.Kind), Name: o.Name})
	}
	return q
}
