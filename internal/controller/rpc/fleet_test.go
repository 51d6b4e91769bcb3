package rpc

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/cmd/heddle-controller/features"
	"heddle/internal/controller/definition"
	"heddle/internal/controller/inventory"
	"heddle/internal/platform/peers"
	"heddle/internal/platform/store"
	"heddle/internal/slice"
	"heddle/internal/spec"
)

// setOf is one of a switch with a port group of that VLAN, and more port groups by their names.
func setOf(t *testing.T, vlan int, more ...string) *slice.Set {
	t.Helper()
	text := fmt.Sprintf("switches:\n- name: dvs\n  uplinks: [{name: uplink1}]\n  portGroups:\n"+
		"  - {name: web, vlan: {access: %d}}\n", vlan)
	for _, name := range more {
		text += "  - {name: " + name + "}\n"
	}
	text += "templates:\n- {name: all, switches: [{name: dvs, uplinks: [{name: uplink1, device: eno1}]}]}\n"
	d, err := spec.ParseDefinition("fleet.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	set, err := inventory.Of(d)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// events make the store's content another.
func events(from, to *slice.Set, revision int64) (b store.Batch) {
	c := slice.Between(from, to)
	add := func(k store.Key, o *store.Object) { b.Events = append(b.Events, store.Event{Key: k, Object: o}) }
	for _, o := range c.Put {
		k := store.Key{Kind: store.Kind(o.Kind), Name: o.Name}
		add(k, &store.Object{Key: k, Doc: o.Doc})
	}
	for _, o := range c.Removed {
		add(store.Key{Kind: store.Kind(o.Kind), Name: o.Name}, nil)
	}
	add(definition.Key(), &store.Object{Key: definition.Key(), Version: revision})
	return b
}

func joins(t *testing.T, id, name string) store.Batch {
	t.Helper()
	doc, err := json.Marshal(hostDoc{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	k := store.Key{Kind: store.KindHost, Name: name}
	return store.Batch{Events: []store.Event{{Key: k, Object: &store.Object{Key: k, ID: id, Doc: doc}}}}
}

// member is a host that is connected, as the test plays it.
type member struct {
	t    *testing.T
	f    *fleet
	host *host
	conn *conn
	sent *content
	set  *slice.Set
	seen bool
}

func fleetOf(t *testing.T, objects *slice.Set) *fleet {
	f := newFleet(slog.New(slog.DiscardHandler), 1)
	f.have(capabilitiesOf(&Server{Options: Options{Log: f.log, Capabilities: features.List()}, fleet: f}), f.adapters,
		f.together)
	f.take(events(&slice.Set{}, objects, 1))
	return f
}

// arrives lets a host join and connect that has that content; nil for none that it knows of.
func arrives(t *testing.T, f *fleet, name string, has *slice.Set) *member {
	t.Helper()
	return arrivesWith(t, f, name, has, nil)
}

// arrivesWith is arrives with a report.
func arrivesWith(t *testing.T, f *fleet, name string, has *slice.Set, report *controllerv1.HostReport) *member {
	t.Helper()
	f.take(joins(t, "id-"+name, name))
	c := &conn{start: name, wake: make(chan struct{}, 1), cancel: func(error) {}}
	hello := &controllerv1.HostHello{Report: report}
	if has != nil {
		hash := has.Hash()
		hello.Have = &controllerv1.SliceVersion{Hash: hash[:]}
	}
	h, err := f.arrive("id-"+name, c, &controllerv1.FollowSliceRequest{Hello: hello})
	if err != nil {
		t.Fatal(err)
	}
	return &member{t: t, f: f, host: h, conn: c, sent: f.content(h, hello.GetHave()), set: has}
}

// next takes in the next message, as the client of an agent does.
func (m *member) next() *controllerv1.FollowSliceResponse {
	m.t.Helper()
	r, err := m.f.next(m.host, m.conn, m.sent, !m.seen)
	if err != nil {
		m.t.Fatal(err)
	}
	m.seen = true
	u := r.GetUpdate()
	if u == nil {
		return r
	}
	set := &slice.Set{}
	if !u.GetWhole() {
		if have := m.set.Hash(); slice.Hash(u.GetFrom()) != have {
			m.t.Fatalf("an update from %x, the host has %s", u.GetFrom(), have)
		}
		set = m.set.Clone()
	}
	var c slice.Change
	for _, o := range u.GetPut() {
		c.Put = append(c.Put, slice.Object{Key: slice.Key{Kind: slice.Kind(o.GetKind()), Name: o.GetName()},
			Doc: o.GetDoc()})
	}
	for _, k := range u.GetRemoved() {
		c.Removed = append(c.Removed, slice.Key{Kind: slice.Kind(k.GetKind()), Name: k.GetName()})
	}
	set.Apply(c)
	if got := set.Hash(); slice.Hash(u.GetVersion().GetHash()) != got {
		m.t.Fatalf("the update makes %s, and says %x", got, u.GetVersion().GetHash())
	}
	m.set = set
	return r
}

// acknowledges says that the host has active what it was sent.
func (m *member) acknowledges() {
	hash := m.set.Hash()
	m.f.said(m.host, m.conn, &controllerv1.FollowSliceRequest{Acknowledgement: &controllerv1.SliceAcknowledgement{
		Version: &controllerv1.SliceVersion{Hash: hash[:]}}})
}

func TestNext_TheLatestVersionWins(t *testing.T) {
	first := setOf(t, 10)
	f := fleetOf(t, first)
	m := arrives(t, f, "a", nil)
	m.next()
	second, third := setOf(t, 20, "db"), setOf(t, 30)
	f.take(events(first, second, 2))
	f.take(events(second, third, 3))
	r := m.next()
	if u := r.GetUpdate(); u.GetVersion().GetRevision() != 3 || u.GetWhole() || len(u.GetPut()) != 1 ||
		len(u.GetRemoved()) != 0 {
		t.Errorf("after two changes the host is sent %v", u)
	}
	if r := m.next(); r != nil {
		t.Errorf("and then %v", r)
	}
}

// Equal content is made once for all hosts, and a whole content is not taken for the difference to nothing, whatever
// comes first.
func TestNext_SharesWhatIsTheSame(t *testing.T) {
	empty := &slice.Set{}
	for name, order := range map[string][]*slice.Set{
		"whole first":      {nil, nil, empty, empty},
		"difference first": {empty, empty, nil, nil},
		"in turns":         {nil, empty, nil, empty},
	} {
		t.Run(name, func(t *testing.T) {
			f := fleetOf(t, setOf(t, 10))
			made := map[bool]*controllerv1.SliceUpdate{}
			for i, has := range order {
				u := arrives(t, f, fmt.Sprint("h", i), has).next().GetUpdate()
				if u.GetWhole() != (has == nil) || (len(u.GetFrom()) > 0) != (has != nil) {
					t.Errorf("a host that has %v is sent %v", has, u)
				}
				if before := made[u.GetWhole()]; before != nil && before != u {
					t.Error("the same is made again")
				}
				made[u.GetWhole()] = u
			}
		})
	}
}

// Differences are for the content that a host was sent last, also when more contents have been handed out since than
// the fleet remembers.
func TestNext_SendsDifferencesToEveryConnectedHost(t *testing.T) {
	d := setOf(t, 10)
	f := fleetOf(t, d)
	m := arrives(t, f, "a", nil)
	m.next()
	f.mu.Lock()
	clear(f.sets)
	f.mu.Unlock()
	f.take(events(d, setOf(t, 20), 2))
	if u := m.next().GetUpdate(); u.GetWhole() || len(u.GetPut()) != 1 {
		t.Errorf("the host is sent %v", u)
	}
}

func TestNext_SendsAllAgainWhereItIsAskedFor(t *testing.T) {
	f := fleetOf(t, setOf(t, 10))
	m := arrives(t, f, "a", &slice.Set{})
	m.next()
	m.f.said(m.host, m.conn, &controllerv1.FollowSliceRequest{
		Acknowledgement: &controllerv1.SliceAcknowledgement{Resend: true}})
	if u := m.next().GetUpdate(); !u.GetWhole() || len(u.GetFrom()) > 0 {
		t.Errorf("the host is sent %v", u)
	}
}

// A connection whose host is to have what it has sleeps on: a change of one switch costs nothing on hosts without it.
func TestTake_WakesWhomItConcerns(t *testing.T) {
	d := setOf(t, 10)
	f := fleetOf(t, d)
	early, m := arrives(t, f, "early", nil), arrives(t, f, "a", nil)
	m.next()
	for _, c := range []*conn{early.conn, m.conn} { // what woke them before
		select {
		case <-c.wake:
		default:
		}
	}
	other := d.Clone()
	other.Put(slice.Object{Key: slice.Key{Kind: slice.Switch, Name: "storage"}, Doc: []byte(`{"name":"storage"}`)})
	f.take(events(d, other, 2))
	if len(m.conn.wake) != 0 || len(early.conn.wake) != 1 {
		t.Errorf("a switch that the host does not have: woken %d, one that was sent nothing yet %d", len(m.conn.wake),
			len(early.conn.wake))
	}
	f.take(events(other, setOf(t, 20), 3))
	if len(m.conn.wake) != 1 {
		t.Error("a change of its own does not wake it")
	}
}

func TestAwait_EndsWhenAllHaveIt(t *testing.T) {
	d := setOf(t, 10)
	f := fleetOf(t, d)
	var all []*member
	var names []string
	for i := range 20 {
		name := fmt.Sprintf("h%02d", i)
		m := arrives(t, f, name, nil)
		m.next()
		m.acknowledges()
		all, names = append(all, m), append(names, name)
	}
	arrives(t, f, "gone", nil)
	f.take(store.Batch{Events: []store.Event{{Key: store.Key{Kind: store.KindHost, Name: "gone"}}}})
	type answer struct {
		waiting []*controllerv1.HostProblem
		err     error
	}
	got := make(chan answer, 1)
	go func() {
		waiting, err := serverOf(f).await(t.Context(), 2, append(slices.Clone(names), "gone"), time.Minute)
		got <- answer{waiting, err}
	}()
	f.take(events(d, setOf(t, 20), 2))
	for i, m := range all { // in an order that is not that of the names
		m = all[(i*7+3)%len(all)]
		select {
		case a := <-got:
			t.Fatalf("ended after %d of %d: %v", i, len(all), a)
		default:
		}
		m.next()
		m.acknowledges()
	}
	if a := <-got; a.err != nil || len(a.waiting) > 0 {
		t.Errorf("answer %+v", a)
	}
	f.take(events(setOf(t, 20), setOf(t, 30), 3))
	all[4].next()
	all[4].acknowledges()
	f.leave(all[5].host, all[5].conn)
	waiting, err := serverOf(f).await(context.Background(), 3, names[3:7], time.Millisecond)
	if err != nil || len(waiting) != 3 || waiting[0].GetHost() != "h03" ||
		waiting[1].GetProblems()[0] != "it is not connected" ||
		waiting[2].GetProblems()[0] != "it has not answered yet" {
		t.Errorf("waiting %v, %v", waiting, err)
	}
}

// A host that joins by the name of another takes its place; the other's certificate is nobody's then.
func TestTake_ANameIsOfOneHost(t *testing.T) {
	f := fleetOf(t, setOf(t, 10))
	arrives(t, f, "a", nil)
	f.take(joins(t, "id-new", "a"))
	if len(f.hosts) != 1 || f.names["a"] == nil || f.names["a"].id != "id-new" || f.hosts["id-new"] != f.names["a"] {
		t.Errorf("hosts %v, names %v", f.hosts, f.names)
	}
	f.take(store.Batch{Events: []store.Event{{Key: store.Key{Kind: store.KindHost, Name: "a"}}}})
	if len(f.hosts)+len(f.names) != 0 {
		t.Errorf("hosts %v, names %v", f.hosts, f.names)
	}
	f.take(joins(t, "id-new", "a"))
	b := events(&slice.Set{}, setOf(t, 10), 4)
	b.Reset = true
	f.take(b)
	if len(f.hosts)+len(f.names) != 0 {
		t.Errorf("after a reset without hosts: %v, names %v", f.hosts, f.names)
	}
}

// serverOf is a controller that is alone, with a fleet.
func serverOf(f *fleet) *Server { return &Server{fleet: f, Roster: peers.New(noStore{})} }

// noStore is the store of a controller that is alone.
type noStore struct{ Store }

func (noStore) List(store.Kind) []store.Object { return nil }
