package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/platform/store"
	"heddle/internal/slice"
)

// calls is what is called during a change, in order. fail is the call that fails, "" for none.
type calls struct {
	list []string
	fail string
}

var errRefused = errors.New("refused")

func (c *calls) call(what string) error {
	c.list = append(c.list, what)
	if what == c.fail {
		return errRefused
	}
	return nil
}

// stored is one in memory, and a source.
type stored struct {
	*calls
	have, next *slice.Set
}

func (d stored) Sync(context.Context) error { return d.call("sync") }
func (d stored) Fold(context.Context) error { return d.call("fold") }
func (d stored) Read() (int64, *slice.Set, map[slice.Key]int64) {
	_ = d.call("read")
	return 7, d.have, map[slice.Key]int64{}
}

func (d stored) Write(_ context.Context, _ *Plan, more func() ([]store.Change, error)) (int64, error) {
	if _, err := more(); err != nil {
		return 0, err
	}
	return 8, d.call("write")
}

func (d stored) Parse(context.Context) error { return d.call("source") }
func (d stored) Wanted(*slice.Set) (Wanted, error) {
	return Wanted{Next: d.next}, d.call("wanted")
}

// whole is a part with all hooks, half one with those that change something.
type whole struct {
	*calls
	name string
}

func (w whole) Parse(context.Context, *Plan) error     { return w.call(w.name + ".parse") }
func (w whole) Open(context.Context, *Plan) error      { return w.call(w.name + ".open") }
func (w whole) Judge(context.Context, *Plan) error     { return w.call(w.name + ".judge") }
func (w whole) Weigh(context.Context, *Plan) error     { return w.call(w.name + ".weigh") }
func (w whole) Foretell(context.Context, *Plan) error  { return w.call(w.name + ".foretell") }
func (w whole) Satisfied(context.Context, *Plan) error { return w.call(w.name + ".satisfied") }
func (w whole) Prepare(context.Context, *Plan) error   { return w.call(w.name + ".prepare") }
func (w whole) Changes(*Plan) ([]store.Change, error)  { return nil, w.call(w.name + ".changes") }
func (w whole) Tell(context.Context, *Plan)            { _ = w.call(w.name + ".tell") }
func (w whole) Settle(context.Context, *Plan)          { _ = w.call(w.name + ".settle") }
func (w whole) Close()                                 { _ = w.call(w.name + ".close") }

type half struct{ whole }

func made(t *testing.T, c *calls, q *Request, changes bool) *controllerv1.ApplyDefinitionResponse {
	t.Helper()
	have, next := &slice.Set{}, &slice.Set{}
	if changes {
		doc, err := json.Marshal(map[string]any{})
		if err != nil {
			t.Fatal(err)
		}
		next.Put(slice.Object{Key: slice.Key{Kind: slice.Switch, Name: "s"}, Doc: doc})
	}
	d := stored{c, have, next}
	q.Source = d
	out, err := Make(t.Context(), d, []Part{whole{c, "a"}, struct{}{}, half{whole{c, "b"}}}, q)
	if (err != nil) != (c.fail != "") || c.fail != "" && !errors.Is(err, errRefused) {
		t.Errorf("%v", err)
	}
	return out
}

// The order of a change's steps is the contract between its parts: what is read, judged, weighed, prepared, written.
func TestMake_TheOrderOfTheSteps(t *testing.T) {
	start := "a.parse b.parse source sync fold a.open b.open read wanted a.judge b.judge a.weigh b.weigh "
	for _, c := range []struct {
		name     string
		q        *controllerv1.ApplyDefinitionRequest
		changes  bool
		want     string
		revision int64
	}{
		{"a change", &controllerv1.ApplyDefinitionRequest{}, true, "a.prepare b.prepare a.changes b.changes write " +
			"a.tell b.tell a.settle b.settle ", 8},
		{"a change that changes nothing", &controllerv1.ApplyDefinitionRequest{}, false,
			"a.satisfied b.satisfied a.settle b.settle ", 7},
		{"a dry run", &controllerv1.ApplyDefinitionRequest{DryRun: true}, true, "a.foretell b.foretell ", 7},
	} {
		t.Run(c.name, func(t *testing.T) {
			log := &calls{}
			out := made(t, log, &Request{ApplyDefinitionRequest: c.q}, c.changes)
			if got := strings.Join(log.list, " "); got != start+c.want+"a.close b.close" {
				t.Errorf("got  %s\nwant %s", got, start+c.want+"a.close b.close")
			}
			if out.GetRevision() != c.revision || (len(out.GetChanges()) > 0) != c.changes {
				t.Errorf("the answer: %v", out)
			}
		})
	}
}

// Whatever step refuses, none after it is taken, nothing is written, and what parts had others know is forgotten.
func TestMake_ARefusalEndsTheChange(t *testing.T) {
	all := &calls{}
	made(t, all, &Request{ApplyDefinitionRequest: &controllerv1.ApplyDefinitionRequest{}}, true)
	for i, step := range all.list {
		if _, hook, part := strings.Cut(step, "."); step == "read" || part && slices.Contains([]string{"tell", "settle",
			"close"}, hook) {
			continue // these cannot fail
		}
		log := &calls{fail: step}
		out := made(t, log, &Request{ApplyDefinitionRequest: &controllerv1.ApplyDefinitionRequest{}}, true)
		want := append(slices.Clone(all.list[:i+1]), "a.close", "b.close")
		if !slices.Equal(log.list, want) || out != nil {
			t.Errorf("%s refuses: %v\nwant %v", step, log.list, want)
		}
	}
}

// A change that was made on another revision is refused before anybody judges it.
func TestMake_OnAnotherRevision(t *testing.T) {
	log := &calls{fail: "base"}
	made(t, log, &Request{ApplyDefinitionRequest: &controllerv1.ApplyDefinitionRequest{},
		Base: func(now int64) error {
			if now != 7 {
				t.Errorf("the definition is at %d", now)
			}
			return log.call("base")
		}}, true)
	if slices.Contains(log.list, "wanted") || slices.Contains(log.list, "a.judge") {
		t.Errorf("%v", log.list)
	}
}
