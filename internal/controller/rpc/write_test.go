package rpc

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/definition"
	"heddle/internal/controller/inventory"
	"heddle/internal/platform/store"
	"heddle/internal/slice"
	"heddle/internal/spec"
)

// large is a definition of many port groups, all in the VLAN; its file has the port groups from first on.
func large(first, groups, vlan int) string {
	var b strings.Builder
	b.WriteString("switches:\n- name: dvs\n  uplinks: [{name: uplink1}]\n  portGroups:\n")
	for i := first; i < first+groups; i++ {
		fmt.Fprintf(&b, "  - {name: g%04d, vlan: {access: %d}}\n", i, vlan)
	}
	b.WriteString("templates:\n- {name: a, labels: {rack: a}, switches: [{name: dvs, uplinks: [{name: uplink1, " +
		"device: eno1}]}]}\n")
	return b.String()
}

func (c *controller) write(changes ...store.Change) {
	c.t.Helper()
	must(c.Store.Write(c.t.Context(), changes))(c.t)
}

func parsed(text string) (*spec.Definition, error) {
	return spec.ParseDefinition("fleet.yaml", []byte(text))
}

func marshal(p definition.Part) ([]byte, error) { return json.Marshal(p) }

// generation is which of the definitions an inventory is, by the port groups that it has; "" for none of them.
func generation(v *inventory.Inventory, of map[string]slice.Hash) string {
	for name, hash := range of {
		if hash == v.Objects().Hash() {
			return name
		}
	}
	return ""
}

// A change of the definition counts at one instant, however many objects it has: on no controller, and on no host, is
// there anything between what was and what is.
func TestDefinition_AChangeOfManyObjectsIsOne(t *testing.T) {
	c := newController(t)
	c.define(large(0, 1, 1))
	m := c.up("esx1")
	const many = 300
	steps := []string{large(0, many, 10), large(0, many, 20), large(many/2, many, 30), large(0, 1, 40)}
	of := map[string]slice.Hash{}
	// Another controller, which follows the same store.
	other := newFleet(c.Log, 1)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	watch := c.Store.Watch(ctx, 0)
	other.take(<-watch)
	of["0"] = other.inventory.Objects().Hash()
	for i, text := range steps {
		t.Run(fmt.Sprint("step ", i+1), func(t *testing.T) {
			of[fmt.Sprint(i+1)] = must(inventory.Of(must(parsed(text))(t)))(t).Hash()
			out := must(people{c.Server}.ApplyDefinition(t.Context(), &controllerv1.ApplyDefinitionRequest{
				Content: text, Force: true}))(t)
			var seen []string
			for len(other.staged.Docs) > 0 || other.revision < out.GetRevision() {
				other.take(<-watch)
				if g := generation(other.inventory, of); len(seen) == 0 || seen[len(seen)-1] != g {
					seen = append(seen, g)
				}
			}
			want := []string{fmt.Sprint(i), fmt.Sprint(i + 1)}
			if len(seen) == 1 {
				want = want[1:] // one transaction
			}
			if !slices.Equal(seen, want) {
				t.Errorf("the definition was, one after the other, %q, want %q", seen, want)
			}
			if n := len(c.Store.List(definition.ChangeKind)); n != 0 {
				t.Errorf("%d objects of the change are left", n)
			}
			c.await("the host has it", func() bool {
				m.mu.Lock()
				defer m.mu.Unlock()
				return m.given != nil && m.given.Revision == out.GetRevision()
			})
		})
	}
}

// ending is a store whose controller ends when it was written so often.
type ending struct {
	Store
	writes int
}

var errEnded = errors.New("the controller has ended")

func (e *ending) Write(ctx context.Context, list []store.Change) (int64, error) {
	if e.writes--; e.writes < 0 {
		return 0, errEnded
	}
	return e.Store.Write(ctx, list)
}

// leaving is a store whose caller leaves as soon as a change of the definition counts.
type leaving struct {
	Store
	leave context.CancelFunc
}

func (l *leaving) Write(ctx context.Context, list []store.Change) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	revision, err := l.Store.Write(ctx, list)
	if slices.ContainsFunc(list, func(c store.Change) bool { return c.Key == definition.Key() }) {
		l.leave()
	}
	return revision, err
}

func (l *leaving) Resize(ctx context.Context, group string, ports int, guard *store.Change) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return l.Store.Resize(ctx, group, ports, guard)
}

// Who leaves once a change of many objects counts has it made to the end: it is folded, and its port groups get their
// static ports.
func TestDefinition_AChangeThatCountsIsMadeWithoutItsCaller(t *testing.T) {
	c := newController(t)
	c.define(large(0, 1, 1))
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	left := *c.Server
	left.Store = &leaving{c.Store, leave}
	const many = 300
	text := strings.ReplaceAll(large(0, many, 2), "vlan:", "binding: elastic, ports: {number: 8}, vlan:")
	_, err := people{&left}.ApplyDefinition(ctx, &controllerv1.ApplyDefinitionRequest{Content: text})
	if ctx.Err() == nil {
		t.Fatalf("the change never counted: %v", err)
	}
	if n := len(c.Store.List(definition.ChangeKind)); n != 0 {
		t.Errorf("%d objects of the change are left: %v", n, err)
	}
	if n := len(c.Store.List(store.KindPorts)); n != many {
		t.Errorf("%d port groups have their static ports, want %d: %v", n, many, err)
	}
}

// Wherever a controller ends while it writes a change of many objects: the definition is the one before or the one
// after, and the next change finds it in order.
func TestDefinition_AControllerThatEndsLeavesAWholeChange(t *testing.T) {
	before, after := large(0, 1, 1), large(0, 400, 2)
	for writes := range 9 {
		t.Run(fmt.Sprintf("after %d transactions", writes), func(t *testing.T) {
			t.Parallel()
			c := newController(t)
			c.define(before)
			dies := *c.Server
			dies.Store = &ending{c.Store, writes}
			out, err := people{&dies}.ApplyDefinition(t.Context(), &controllerv1.ApplyDefinitionRequest{
				Content: after, Force: true})
			want := before
			if err == nil {
				want = after
			} else if writes > 2 {
				t.Errorf("refused: %v", err)
			}
			hash := must(inventory.Of(must(parsed(want))(t)))(t).Hash()
			fresh := newFleet(c.Log, 1)
			fresh.take(<-c.Store.Watch(t.Context(), 0))
			if fresh.inventory.Objects().Hash() != hash {
				t.Errorf("a controller that starts has %d objects", fresh.inventory.Objects().Len())
			}
			if err == nil && fresh.revision != out.GetRevision() {
				t.Errorf("it has revision %d, want %d", fresh.revision, out.GetRevision())
			}
			next := large(100, 200, 3)
			c.define(next)
			if got, _ := definition.Stored(c.Store); got.Hash() != must(inventory.Of(must(parsed(next))(t)))(t).Hash() {
				t.Errorf("after the next change the store has %d objects", got.Len())
			}
			for _, o := range c.Store.List(definition.ChangeKind) {
				if err == nil {
					t.Errorf("%s is left", o.Key)
				}
			}
		})
	}
}

// A change of many objects that was made on an old revision is refused as a whole, and nothing of it is left.
func TestS83_AChangeOfManyObjectsOnAnOldRevisionIsRefused(t *testing.T) {
	c := newController(t)
	c.define(large(0, 1, 1))
	old := must(people{c.Server}.GetDefinition(t.Context(), nil))(t).GetRevision()
	now := large(0, 2, 2)
	c.define(now)
	change := slice.Between(&slice.Set{}, must(inventory.Of(must(parsed(large(0, 400, 3)))(t)))(t))
	var conflict *store.Conflict
	if _, err := c.definitions().WriteInParts(t.Context(), "fleet.yaml", old, change, nil); !errors.As(err, &conflict) {
		t.Errorf("error %v, want a conflict", err)
	}
	if got, _ := definition.Stored(c.Store); got.Hash() != must(inventory.Of(must(parsed(now))(t)))(t).Hash() {
		t.Errorf("the definition has %d objects now", got.Len())
	}
	if left := c.Store.List(definition.ChangeKind); len(left) > 0 {
		t.Errorf("%d objects are left, such as %s", len(left), left[0].Key)
	}
}

// Parts of a change that can't count any more are removed by the next change, whatever clocks show; those that somebody
// may be writing for a change of the definition as it is now stay.
func TestS145_WhatNeverCountedIsRemovedByRevision(t *testing.T) {
	c := newController(t)
	stage := func(id string, at time.Time) {
		c.write(store.Change{Key: definition.PartKey(id, 0), Doc: must(marshal(definition.Part{At: at}))(t)})
	}
	stage("ahead", time.Now().Add(100*day))
	c.define(large(0, 400, 1))
	stage("behind", time.Now().Add(-100*day))
	left := func() (names []string) {
		for _, o := range c.Store.List(definition.ChangeKind) {
			names = append(names, o.Name)
		}
		return names
	}
	if want := []string{"behind/0000"}; !slices.Equal(left(), want) {
		t.Errorf("left are %q, want %q", left(), want)
	}
	now, _ := c.Store.Get(definition.Key())
	if o, _ := c.Store.Get(definition.PartKey("behind", 0)); definition.Dead(o, now) {
		t.Error("a part that was written on the definition as it is now can't count any more")
	}
	c.define(large(0, 400, 2))
	if len(left()) != 0 {
		t.Errorf("left are %q", left())
	}
}

// A change that counts and of which a part is missing, or another one, defines nothing: the definition stays.
func TestS145_AChangeIsWholeOrNothing(t *testing.T) {
	c := slice.Change{Put: []slice.Object{{Key: slice.Key{Kind: slice.PortGroup, Name: "s/a"}, Doc: []byte(`{}`)}}}
	one := must(marshal(definition.Part{Put: c.Put}))(t)
	sum := sha256.Sum256(one)
	head := func(parts int, digest string) []byte {
		return []byte(fmt.Sprintf(`{"parts":%d,"digest":%q}`, parts, digest))
	}
	good := hex.EncodeToString(sum[:])
	for name, docs := range map[string]map[string][]byte{
		"a part is missing":    {"id": head(2, good), "id/0000": one},
		"all are missing":      {"id": head(1, good)},
		"there is one more":    {"id": head(1, good), "id/0000": one, "id/0001": one},
		"another one is there": {"id": head(1, good), "id/0000": []byte(`{"removed":[]}`)},
	} {
		t.Run(name, func(t *testing.T) {
			s := definition.Staging{Change: "id", Docs: docs}
			if got, err := s.Over(&slice.Set{}); err == nil {
				t.Errorf("it makes a definition of %d objects", got.Len())
			}
		})
	}
	for name, docs := range map[string]map[string][]byte{
		"whole":                 {"id": head(1, good), "id/0000": one},
		"of an earlier version": {"id": head(1, ""), "id/0000": one},
	} {
		t.Run(name, func(t *testing.T) {
			s := definition.Staging{Change: "id", Docs: docs}
			if got, err := s.Over(&slice.Set{}); err != nil || got.Len() != 1 {
				t.Errorf("%v", err)
			}
		})
	}
	folded := definition.Staging{Change: "id", Docs: map[string][]byte{"id": []byte(`{"parts":9,"folded":true}`)}}
	if got, err := folded.Over(&slice.Set{}); err != nil || got.Len() != 0 {
		t.Errorf("one whose parts are being removed: %v", err)
	}
}

// Parts are no larger than a transaction takes, and together they are the change.
func TestInParts(t *testing.T) {
	var c slice.Change
	for i := range 2000 {
		c.Put = append(c.Put, slice.Object{Key: slice.Key{Kind: slice.PortGroup, Name: fmt.Sprint("s/", i)},
			Doc: []byte(`{"name":"` + strings.Repeat("x", 1000) + `"}`)})
		c.Removed = append(c.Removed, slice.Key{Kind: slice.PortGroup, Name: fmt.Sprint("t/", i)})
	}
	from := &slice.Set{}
	for _, k := range c.Removed {
		from.Put(slice.Object{Key: k, Doc: []byte("{}")})
	}
	want, got := from.Clone(), definition.Staging{Change: "id", Docs: map[string][]byte{"else/0000": []byte("{")}}
	want.Apply(c)
	parts := definition.InParts(c)
	got.Docs["id"] = []byte(fmt.Sprintf(`{"parts":%d}`, len(parts)))
	for n, p := range parts {
		doc := must(marshal(definition.Part{Put: p.Put, Removed: p.Removed}))(t)
		if len(doc) > definition.TxnBytes {
			t.Errorf("part %d has %d bytes", n, len(doc))
		}
		got.Docs[definition.PartKey("id", n).Name] = doc
	}
	if whole := must(got.Over(from))(t); whole.Hash() != want.Hash() || len(parts) < 5 {
		t.Errorf("%d parts make %d objects, want %d", len(parts), whole.Len(), want.Len())
	}
	delete(got.Docs, "id")
	if whole := must(got.Over(from))(t); whole.Hash() != from.Hash() {
		t.Error("a change that is folded changes something")
	}
}
