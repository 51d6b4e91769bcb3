package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const web = "dvs/web"

// withGroup makes a port group with static ports.
func withGroup(t *testing.T, s *Store, group string, ports int) {
	t.Helper()
	write(t, s, put(KindPortGroup, group, `{}`, New))
	if err := s.Resize(patient(t), group, ports, nil); err != nil {
		t.Fatal(err)
	}
}

func nic(host, vm string) Binding { return Binding{Host: host, VM: vm, Adapter: "net0"} }

func claim(t *testing.T, s *Store, r ClaimRequest) Port {
	t.Helper()
	p, err := s.Claim(patient(t), r)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// ports are all ports of a group by identifier, as they are in memory.
func ports(t *testing.T, s *Store, group string) map[string]Port {
	t.Helper()
	all := map[string]Port{}
	for _, o := range s.List(KindPorts) {
		if !strings.HasPrefix(o.Name, group+"/") {
			continue
		}
		list, err := DecodePorts(&o)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range list {
			all[p.ID] = p
		}
	}
	return all
}

// indexKeys are the keys of the index that exist for bindings.
func indexKeys(t *testing.T, s *Store) []string {
	t.Helper()
	resp, err := s.client.Get(patient(t), s.keys.index(""), clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, kv := range resp.Kvs {
		if name := strings.TrimPrefix(string(kv.Key), s.keys.index("")); !strings.HasPrefix(name, "pool/") {
			names = append(names, name)
		}
	}
	return names
}

// Two controllers that want the same port never both get it, whatever their memories say.
func TestS77_OfTwoClaimsOfOnePortOneSucceeds(t *testing.T) {
	t.Parallel()
	a := openNew(t)
	b := beside(t, a)
	const contested, rounds = 100, 100
	withGroup(t, a, web, contested)
	if err := b.Sync(patient(t)); err != nil {
		t.Fatal(err)
	}
	history := &transitions{t: t, moved: make(chan struct{}, 1)}
	follow, stop := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	watching.Go(func() { history.count(follow, a) })
	defer watching.Wait()
	defer stop()
	var all sync.WaitGroup
	for id := range ports(t, a, web) {
		all.Go(func() { contest(t, a, b, id, rounds) })
	}
	all.Wait()
	if t.Failed() {
		return
	}
	history.until(patient(t), contested*rounds)
	if left := indexKeys(t, a); len(left) > 0 {
		t.Errorf("all ports are free, and the index has %v", left)
	}
}

// contest has two stores claim a port at the same time, and whoever got it give it up.
func contest(t *testing.T, a, b *Store, id string, rounds int) {
	for round := range rounds {
		var errs [2]error
		requests := [2]ClaimRequest{}
		var both sync.WaitGroup
		for i, s := range []*Store{a, b} {
			both.Go(func() {
				vm := fmt.Sprintf("vm-%s-%d-%d", id, round, i)
				requests[i] = ClaimRequest{PortGroup: web, Port: id, Binding: nic(fmt.Sprint("host", i), vm)}
				requests[i].MAC = fmt.Sprintf("02:00:00:%02x:%02x:%02x", i, round>>8, round&255) + id
				_, errs[i] = s.Claim(t.Context(), requests[i])
			})
		}
		both.Wait()
		winner := 0
		if errs[0] != nil {
			winner = 1
		}
		var taken *Taken
		if errs[winner] != nil || !errors.As(errs[1-winner], &taken) || taken.What != "port" ||
			*taken.Binding != requests[winner].Binding {
			t.Errorf("port %s, round %d: %v, %v", id, round, errs[0], errs[1])
			return
		}
		w := requests[winner].Binding
		other := []*Store{b, a}[winner] // the one that lost gives it up: the store is one
		release := ReleaseRequest{PortGroup: web, Port: id, VM: w.VM, Adapter: w.Adapter, Host: w.Host}
		if err := other.Release(t.Context(), release); err != nil {
			t.Errorf("port %s, round %d: %v", id, round, err)
			return
		}
	}
}

// transitions counts how often ports were bound and released, and fails when a bound port was bound to somebody else.
type transitions struct {
	t                  *testing.T
	mu                 sync.Mutex
	bindings, releases int
	moved              chan struct{}
}

func (h *transitions) decode(o *Object) map[string]*Binding {
	byID := map[string]*Binding{}
	if o == nil {
		return byID
	}
	list, err := DecodePorts(o)
	if err != nil {
		h.t.Error(err)
	}
	for _, p := range list {
		byID[p.ID] = p.Binding
	}
	return byID
}

func (h *transitions) count(ctx context.Context, s *Store) {
	first := true
	for batch := range s.Watch(ctx, s.Revision()) {
		if batch.Reset && !first {
			h.t.Error("the history has a gap: this test is void")
		}
		first = false
		for _, e := range batch.Events {
			if e.Kind == KindPorts {
				h.compare(batch.Revision, h.decode(e.Before), h.decode(e.Object))
			}
		}
		select {
		case h.moved <- struct{}{}:
		default: // whoever waits looks soon anyway
		}
	}
}

func (h *transitions) compare(rev int64, before, after map[string]*Binding) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, now := range after {
		switch was := before[id]; {
		case was == nil && now != nil:
			h.bindings++
		case was != nil && now == nil:
			h.releases++
		case was != nil && *was != *now:
			h.t.Errorf("revision %d: port %s went from %+v to %+v", rev, id, was, now)
		}
	}
}

// until waits for so many bindings and as many releases, and fails when there are more.
func (h *transitions) until(ctx context.Context, want int) {
	for {
		h.mu.Lock()
		bindings, releases := h.bindings, h.releases
		h.mu.Unlock()
		if bindings == want && releases == want {
			return
		}
		if ctx.Err() != nil || bindings > want || releases > want {
			h.t.Errorf("%d bindings and %d releases are in the history, want %d", bindings, releases, want)
			return
		}
		select {
		case <-h.moved:
		case <-ctx.Done():
		}
	}
}

func TestS77_AFullPortGroupRefusesAndAnElasticOneGrows(t *testing.T) {
	s := openNew(t)
	other := beside(t, s)
	withGroup(t, s, web, 40)
	var all sync.WaitGroup
	errs := make([]error, 50)
	for i := range errs {
		by := []*Store{s, other}[i%2]
		all.Go(func() {
			_, errs[i] = by.Claim(patient(t), ClaimRequest{PortGroup: web, Binding: nic("h", fmt.Sprint("vm", i))})
		})
	}
	all.Wait()
	refused := 0
	for _, err := range errs {
		var none *NoFreePort
		if errors.As(err, &none) && none.Ports == 40 {
			refused++
		} else if err != nil {
			t.Error(err)
		}
	}
	if refused != 10 {
		t.Errorf("%d of 50 claims of 40 ports were refused", refused)
	}
	for i := range 30 {
		by := []*Store{s, other}[i%2]
		all.Go(func() {
			r := ClaimRequest{PortGroup: web, Binding: nic("h", fmt.Sprint("more", i)), Limit: 60}
			_, errs[i] = by.Claim(patient(t), r)
		})
	}
	all.Wait()
	refused = 0
	for _, err := range errs[:30] {
		if err != nil {
			refused++
		}
	}
	if err := s.Sync(patient(t)); err != nil {
		t.Fatal(err)
	}
	free, bound := s.mem.countPorts(web)
	if refused != 10 || free != 0 || bound != 60 || len(ports(t, s, web)) != 60 {
		t.Errorf("%d of 30 were refused; %d ports free, %d bound, limit 60", refused, free, bound)
	}
}

// A port comes along with its adapter: the same port, with its own fields.
func TestS79_APortComesAlongToAnotherHost(t *testing.T) {
	s := openNew(t)
	withGroup(t, s, web, 3)
	first := ClaimRequest{PortGroup: web, Binding: nic("a", "vm1")}
	first.MAC = "02:00:00:00:00:01"
	p := claim(t, s, first)
	name := func(Port) ([]byte, error) { return []byte(`{"name":"front","policy":{"x":1}}`), nil }
	if err := s.EditPort(patient(t), web, p.ID, name); err != nil {
		t.Fatal(err)
	}
	if again := claim(t, s, first); again.ID != p.ID {
		t.Errorf("the same claim again gets %s, not %s", again.ID, p.ID)
	}
	moved := first
	moved.Host = "b"
	var taken *Taken
	if _, err := s.Claim(patient(t), moved); !errors.As(err, &taken) || taken.Binding.Host != "a" {
		t.Errorf("a claim from another host without a migration: %v", err)
	}
	moved.Move = true
	want := Port{ID: p.ID, Group: web, Binding: &moved.Binding,
		Doc: json.RawMessage(`{"name":"front","policy":{"x":1}}`)}
	if got := claim(t, s, moved); cmp.Diff(want, got) != "" {
		t.Error(cmp.Diff(want, got))
	}
	if got, _ := s.GetPort(web, p.ID); cmp.Diff(want, got) != "" {
		t.Error(cmp.Diff(want, got))
	}
	late := ReleaseRequest{PortGroup: web, Port: p.ID, VM: "vm1", Adapter: "net0", Host: "a"}
	if err := s.Release(patient(t), late); !errors.As(err, &taken) {
		t.Errorf("the host that it left gives it up: %v", err)
	}
	late.Host = "b"
	if err := s.Release(patient(t), late); err != nil {
		t.Error(err)
	}
	if got, _ := s.GetPort(web, p.ID); got.Binding != nil || string(got.Doc) != string(want.Doc) {
		t.Errorf("given up: %+v", got)
	}
	var gone *NotFound
	if err := s.Release(patient(t), late); !errors.As(err, &gone) {
		t.Errorf("given up twice: %v", err)
	}
}

func TestWhatOnlyOneMayHave(t *testing.T) {
	s := openNew(t)
	for _, group := range []string{web, "dvs/db", "dvs/overlay"} {
		withGroup(t, s, group, 4)
	}
	has := ClaimRequest{PortGroup: web, Binding: nic("a", "vm1")}
	has.MAC = "02:00:00:00:00:01"
	p := claim(t, s, has)
	over := ClaimRequest{PortGroup: "dvs/overlay", Binding: nic("a", "vm2")}
	over.VNI, over.MAC = 5001, "02:00:00:00:00:02"
	claim(t, s, over)
	write(t, s, Change{Key: Key{KindPortGroup, "dvs/reserved"}, Doc: []byte(`{}`), Reserve: []string{VNIIndex(5002)}})
	change := func(from ClaimRequest, edit func(*ClaimRequest)) ClaimRequest {
		edit(&from)
		return from
	}
	for _, c := range []struct {
		name  string
		claim ClaimRequest
		what  string // "" = it is allowed
	}{
		{"the MAC in the same group", change(has, func(r *ClaimRequest) { r.VM = "vm3" }), "MAC"},
		{"the MAC in another group", change(has, func(r *ClaimRequest) { r.VM, r.PortGroup = "vm3", "dvs/db" }), ""},
		{"the MAC in the VNI", change(over, func(r *ClaimRequest) { r.VM = "vm4" }), "MAC"},
		{"another group's VNI", change(over, func(r *ClaimRequest) { r.VM, r.PortGroup = "vm5", "dvs/db" }), "VNI"},
		{"a reserved VNI", change(over, func(r *ClaimRequest) { r.VM, r.VNI = "vm6", 5002 }), "VNI"},
		{"the adapter in another group", change(has, func(r *ClaimRequest) { r.PortGroup = "dvs/db" }), "adapter"},
		{"the port", change(has, func(r *ClaimRequest) { r.VM, r.MAC, r.Port = "vm7", "", p.ID }), "port"},
		{"another adapter", change(has, func(r *ClaimRequest) { r.Adapter, r.MAC = "net1", "02:00:00:00:00:03" }), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := s.Claim(patient(t), c.claim)
			var taken *Taken
			switch {
			case c.what == "" && err != nil:
				t.Error(err)
			case c.what != "" && (!errors.As(err, &taken) || taken.What != c.what):
				t.Errorf("%v, want that the %s is taken", err, c.what)
			case c.what == "MAC" && taken.Binding == nil, c.what == "adapter" && *taken.Binding != has.Binding:
				t.Errorf("the holder of the %s is not named: %+v", c.what, taken)
			}
		})
	}
	t.Run("a new MAC frees the old one", func(t *testing.T) {
		claim(t, s, change(has, func(r *ClaimRequest) { r.MAC = "02:00:00:00:00:09" }))
		claim(t, s, change(has, func(r *ClaimRequest) { r.VM = "vm8" }))
	})
	t.Run("a reserved name", func(t *testing.T) {
		taking := Change{Key: Key{KindPortGroup, "dvs/thief"}, Doc: []byte(`{}`), Reserve: []string{VNIIndex(5002)}}
		var reserved *Reserved
		if _, err := s.Write(patient(t), []Change{taking}); !errors.As(err, &reserved) ||
			reserved.Owner != "portGroup dvs/reserved" {
			t.Errorf("%v", err)
		}
		write(t, s, Change{Key: Key{KindPortGroup, "dvs/reserved"}, Delete: true, IfVersion: Any,
			Free: []string{VNIIndex(5002)}})
		write(t, s, taking)
	})
}

// Identifiers of ports are never given again, also when ports and groups come and go.
func TestIdentifiersOfPortsAreNeverReused(t *testing.T) {
	s := openNew(t)
	other := beside(t, s)
	ever := map[string]bool{}
	for round := range 6 {
		by := []*Store{s, other}[round%2]
		live := map[string]Port{}
		resize := func(size int) {
			if err := by.Resize(patient(t), web, size, nil); err != nil {
				t.Fatal(err)
			}
			now := ports(t, by, web)
			if len(now) != size {
				t.Fatalf("%d ports, want %d", len(now), size)
			}
			for id := range now {
				if _, stayed := live[id]; !stayed && ever[id] {
					t.Fatalf("round %d: port %s was there before", round, id)
				}
				ever[id] = true
			}
			live = now
		}
		write(t, by, put(KindPortGroup, web, `{}`, New))
		for _, size := range []int{70, 10, 50, 0, 2100, 40} {
			resize(size)
		}
		if err := by.RemovePorts(patient(t), web, false, nil); err != nil {
			t.Fatal(err)
		}
		write(t, by, Change{Key: Key{KindPortGroup, web}, Delete: true, IfVersion: Any})
	}
	if len(ever) < 6*2100 {
		t.Errorf("only %d identifiers were given", len(ever))
	}
}

// A port group with bound ports is neither made smaller than those are, nor deleted, but by force.
func TestAPortGroupInUseStays(t *testing.T) {
	s := openNew(t)
	withGroup(t, s, web, 40)
	for i := range 35 {
		r := ClaimRequest{PortGroup: web, Binding: nic("h", fmt.Sprint("vm", i))}
		r.MAC = fmt.Sprintf("02:00:00:00:00:%02x", i)
		claim(t, s, r)
	}
	var used *InUse
	deletion := []Change{{Key: Key{KindPortGroup, web}, Delete: true, IfVersion: Any}}
	if err := s.Resize(patient(t), web, 20, nil); !errors.As(err, &used) || used.Ports != 35 {
		t.Errorf("made smaller: %v", err)
	}
	if err := s.RemovePorts(patient(t), web, false, nil); !errors.As(err, &used) {
		t.Errorf("its ports removed: %v", err)
	}
	if _, err := s.Write(patient(t), deletion); !errors.As(err, &used) || len(ports(t, s, web)) != 35 {
		t.Errorf("deleted: %v; %d ports", err, len(ports(t, s, web)))
	}
	if err := s.RemovePorts(patient(t), web, true, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write(patient(t), deletion); err != nil {
		t.Error(err)
	}
	if left := indexKeys(t, s); len(left) > 0 || len(ports(t, s, web)) > 0 {
		t.Errorf("the index has %v", left)
	}
	var none *NotFound
	if _, err := s.Claim(patient(t), ClaimRequest{PortGroup: web, Binding: nic("h", "x")}); !errors.As(err, &none) {
		t.Errorf("a claim in a group that is gone: %v", err)
	}
}

// Fields that a newer version wrote into a chunk, a port or a binding survive claims and releases.
func TestFieldsOfPortsThatAreUnknownSurvive(t *testing.T) {
	s := openNew(t)
	write(t, s, put(KindPortGroup, web, `{}`, New))
	doc := `{"next":2,"colour":"red","free":{"33":{"size":7}},"bound":{"32":{"name":"n","binding":` +
		`{"host":"a","vm":"v","adapter":"net0","mac":"02:00:00:00:00:01","slot":3}}}}`
	write(t, s, put(KindPorts, web+"/1", doc, New))
	v := Binding{Host: "b", VM: "v", Adapter: "net0", MAC: "02:00:00:00:00:01"}
	if _, err := s.client.Put(patient(t), s.keys.index(nicIndex(&v)), `{"group":"dvs/web","port":"32"}`); err != nil {
		t.Fatal(err)
	}
	claim(t, s, ClaimRequest{PortGroup: web, Binding: v, Move: true})
	claim(t, s, ClaimRequest{PortGroup: web, Binding: nic("a", "w"), Port: "33"})
	o, _ := s.Get(Key{KindPorts, web + "/1"})
	want := `{"bound":{"32":{"binding":{"adapter":"net0","host":"b","mac":"02:00:00:00:00:01","slot":3,"vm":"v"},` +
		`"name":"n"},"33":{"binding":{"host":"a","vm":"w","adapter":"net0"},"size":7}},"colour":"red","free":{},"next":2}`
	if string(o.Doc) != want {
		t.Errorf("%s\nwant\n%s", o.Doc, want)
	}
	for _, bad := range []string{`null`, `[]`, `{"free":null}`, `{"next":"x"}`} {
		if _, err := decodeChunk(web+"/1", []byte(bad)); err == nil {
			t.Errorf("%s is taken for ports", bad)
		}
	}
}

// Who follows the store reads of a port whose it is, and sees the same as who reads all of it.
func TestDecodeBindings_SaysWhatDecodePortsSays(t *testing.T) {
	object := func(doc string) *Object { return &Object{Key: Key{KindPorts, "dvs/db/3"}, Doc: []byte(doc)} }
	for _, c := range []struct{ name, doc string }{
		{"none", `{}`},
		{"unbound ones", `{"next":2,"free":{"96":{},"97":{"name":"x"}},"bound":{}}`},
		{"bound ones", `{"next":3,"free":{"98":{}},"bound":{"96":{"binding":{"host":"h","vm":"v","adapter":"net0",` +
			`"mac":"02:00:00:00:00:01","vni":7}},"97":{"name":"x","binding":{"host":"g","vm":"w","adapter":"net1"}}}}`},
		{"of a newer version", `{"next":1,"later":[1],"bound":{"96":{"more":{"binding":1},"binding":{"host":"h",` +
			`"vm":"v","adapter":"net0","since":4}}}}`},
		{"bound to nobody", `{"next":1,"bound":{"96":{}}}`},
		{"null", `null`},
		{"null inside", `{"next":1,"free":null,"bound":{}}`},
		{"no JSON", `{"next":`},
	} {
		t.Run(c.name, func(t *testing.T) {
			ports, wrong := DecodePorts(object(c.doc))
			got, err := DecodeBindings(object(c.doc))
			if (err == nil) != (wrong == nil) {
				t.Fatalf("error %v, want %v", err, wrong)
			}
			want := Bindings{Ports: len(ports)}
			for _, p := range ports {
				if want.Group = p.Group; p.Binding != nil {
					if want.Bound == nil {
						want.Bound = map[string]*Binding{}
					}
					want.Bound[p.ID] = p.Binding
				}
			}
			if len(got.Bound) == 0 {
				got.Bound = nil
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%+v, want %+v", got, want)
			}
			infos := chunkInfos{}
			infos.put(object(c.doc))
			if known, ok := infos["dvs/db"][3]; ok != (wrong == nil || c.name == "bound to nobody") ||
				ok && wrong == nil && (known.bound != len(want.Bound) || known.free+known.bound != want.Ports) {
				t.Errorf("in memory %+v (%v), want %+v", known, ok, want)
			}
		})
	}
}
