package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"heddle/internal/agent/definition"
	"heddle/internal/agent/loop"
	"heddle/internal/agent/state"
	"heddle/internal/binding"
	"heddle/internal/dataplane"
	"heddle/internal/dataplane/compile"
	"heddle/internal/host/hostdev"
	"heddle/internal/host/hostroute"
	"heddle/internal/observe"
	"heddle/internal/observe/event"
	"heddle/internal/overlay"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// fakeDevices are devices in memory. changes lists the operations on them.
type fakeDevices struct {
	byName    map[string]*hostdev.Device
	ipv6Off   map[string]bool
	arp       map[string]string // arp_ignore; absent = 0
	offload   map[string]map[hostdev.Offload]hostdev.OffloadState
	addresses map[uint32][]netip.Prefix  // by ifindex
	routes    map[uint32]string          // by ifindex
	speed     map[string]float64         // bits per second
	past      map[string][]hostdev.Past  // by the device below
	unheard   map[string]*hostdev.Device // who has a name in the kernel, nil for none, while byName has another
	next      uint32
	changes   []string
	fail      map[string]error // by change
	// before is called ahead of every operation, with its text.
	before func(what string)
}

func newFakeDevices() *fakeDevices {
	return &fakeDevices{byName: map[string]*hostdev.Device{}, ipv6Off: map[string]bool{}, arp: map[string]string{},
		offload: map[string]map[hostdev.Offload]hostdev.OffloadState{}, addresses: map[uint32][]netip.Prefix{}, next: 1,
		fail: map[string]error{}, before: func(string) {}}
}

// veth adds a veth whose other end is up in another namespace with that MAC.
func (f *fakeDevices) veth(name, mac string) *hostdev.Device {
	m, err := plan.ParseMAC(mac)
	if err != nil {
		panic(err)
	}
	f.next++
	d := &hostdev.Device{Index: f.next, Name: name, Kind: hostdev.Veth, Driver: "veth",
		End: hostdev.End{MTU: 1500, Carrier: true}}
	d.Peer = hostdev.Peer{Index: 2, Elsewhere: true, Seen: true, End: hostdev.End{MAC: m, MTU: 1500, AdminUp: true,
		Carrier: true}}
	f.byName[name] = d
	return d
}

// nic adds a physical device.
func (f *fakeDevices) nic(name string, mtu int) *hostdev.Device {
	f.next++
	d := &hostdev.Device{Index: f.next, Name: name, Kind: hostdev.Other, End: hostdev.End{MTU: mtu, Carrier: true,
		MAC: plan.MAC{2, 9, 9, 9, 9, byte(f.next)}}}
	f.byName[name] = d
	return d
}

func (f *fakeDevices) did(format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	f.before(what)
	f.changes = append(f.changes, what)
	return f.fail[what]
}

func (f *fakeDevices) Device(name string) (hostdev.Device, bool, error) {
	d, ok := f.byName[name]
	if !ok {
		return hostdev.Device{}, false, nil
	}
	return *d, true, nil
}

func (f *fakeDevices) DeviceAt(index uint32) (hostdev.Device, bool, error) {
	for _, d := range f.byName {
		if d.Index == index {
			return *d, true, nil
		}
	}
	return hostdev.Device{}, false, nil
}

// rename gives a device another name.
func (f *fakeDevices) rename(from, to string) {
	d := f.byName[from]
	delete(f.byName, from)
	d.Name, f.byName[to] = to, d
	f.ipv6Off[to], f.arp[to], f.offload[to] = f.ipv6Off[from], f.arp[from], f.offload[from]
}

func (f *fakeDevices) WithAlias(prefix string) []hostdev.Device {
	var found []hostdev.Device
	for _, d := range f.byName {
		if strings.HasPrefix(d.Alias, prefix) {
			found = append(found, *d)
		}
	}
	return found
}

func (f *fakeDevices) Members(d hostdev.Device) []hostdev.Device {
	var found []hostdev.Device
	for _, m := range f.byName {
		if m.Master.Name == d.Name {
			found = append(found, *m)
		}
	}
	return found
}

func (f *fakeDevices) Past(d hostdev.Device) []hostdev.Past { return f.past[d.Name] }

func (f *fakeDevices) Notes() <-chan hostdev.Note       { return nil }
func (f *fakeDevices) Apply(hostdev.Note) (bool, error) { return true, nil }
func (f *fakeDevices) Refresh() error                   { return nil }
func (f *fakeDevices) WatchCarrier([]uint32)            {}

func (f *fakeDevices) Look(name string) (bool, error) {
	d, changed := f.unheard[name]
	if !changed {
		return false, nil
	}
	delete(f.unheard, name)
	if delete(f.byName, name); d != nil {
		f.byName[name] = d
	}
	return true, nil
}

func (f *fakeDevices) CreatePair(p hostdev.Pair) error {
	if err := f.did("create %s %s", p.Host, p.Switch); err != nil {
		return err
	}
	host := f.veth(p.Host, p.MAC.String())
	end := f.veth(p.Switch, p.MAC.String())
	for _, d := range []*hostdev.Device{host, end} {
		d.Alias, d.MTU, d.Peer.Elsewhere = p.Alias, p.MTU, false
	}
	host.MAC, host.Peer.Index, end.Peer.Index = p.MAC, end.Index, host.Index
	return nil
}

func (f *fakeDevices) CreateTunnel(t hostdev.Tunnel) error {
	if err := f.did("create tunnel %s %d", t.Name, t.Port); err != nil {
		return err
	}
	f.next++
	f.byName[t.Name] = &hostdev.Device{Index: f.next, Name: t.Name, Alias: t.Alias, Kind: hostdev.Other,
		Driver: "vxlan", TunnelPort: t.Port, End: hostdev.End{MTU: 65000, Carrier: true}}
	return nil
}

func (f *fakeDevices) Holder(a netip.Addr) (hostdev.Device, bool, error) {
	for index, list := range f.addresses {
		for _, prefix := range list {
			if prefix.Addr() == a {
				return f.DeviceAt(index)
			}
		}
	}
	return hostdev.Device{}, false, nil
}

func (f *fakeDevices) Delete(d hostdev.Device) error {
	if err := f.did("delete %s", d.Name); err != nil {
		return err
	}
	for name, other := range f.byName {
		if name == d.Name || !d.Peer.Elsewhere && d.Peer.Index == other.Index {
			delete(f.byName, name)
		}
	}
	return nil
}

func (f *fakeDevices) SetUp(d hostdev.Device, up bool) error {
	err := f.did("up %s %v", d.Name, up)
	f.byName[d.Name].AdminUp = up
	return err
}

func (f *fakeDevices) SetPromiscuous(d hostdev.Device, on bool) error {
	err := f.did("promiscuous %s %v", d.Name, on)
	f.byName[d.Name].FlagPromiscuous = on
	return err
}

func (f *fakeDevices) SetMTU(d hostdev.Device, mtu int) error {
	err := f.did("mtu %s %d", d.Name, mtu)
	f.byName[d.Name].MTU = mtu
	return err
}

func (f *fakeDevices) SetMAC(d hostdev.Device, mac plan.MAC) error {
	err := f.did("mac %s %s", d.Name, mac)
	f.byName[d.Name].MAC = mac
	return err
}

func (f *fakeDevices) SetAlias(d hostdev.Device, alias string) error {
	err := f.did("alias %s %s", d.Name, alias)
	f.byName[d.Name].Alias = alias
	return err
}

func (f *fakeDevices) SetName(d hostdev.Device, name string) error {
	if err := f.did("name %s %s", d.Name, name); err != nil {
		return err
	}
	f.rename(d.Name, name)
	return nil
}

func (f *fakeDevices) Addresses(d hostdev.Device) ([]netip.Prefix, error) {
	return slices.Clone(f.addresses[d.Index]), nil
}

func (f *fakeDevices) SetRoutes(d hostdev.Device, want ...hostroute.Route) ([]hostroute.Route, error) {
	text := fmt.Sprint(want)
	if text == f.routes[d.Index] || len(want) == 0 && f.routes[d.Index] == "" {
		return nil, nil
	}
	if f.routes == nil {
		f.routes = map[uint32]string{}
	}
	f.routes[d.Index] = text
	return want, f.did("routes of %s %s", d.Name, text)
}

func (f *fakeDevices) AddAddress(d hostdev.Device, p netip.Prefix) error {
	err := f.did("address %s + %s", d.Name, p)
	if err == nil {
		f.addresses[d.Index] = append(f.addresses[d.Index], p)
	}
	return err
}

func (f *fakeDevices) RemoveAddress(d hostdev.Device, p netip.Prefix) error {
	err := f.did("address %s - %s", d.Name, p)
	f.addresses[d.Index] = slices.DeleteFunc(slices.Clone(f.addresses[d.Index]),
		func(o netip.Prefix) bool { return o == p })
	return err
}

func (f *fakeDevices) IPv6(d hostdev.Device) (bool, error) { return !f.ipv6Off[d.Name], nil }

func (f *fakeDevices) SetIPv6(d hostdev.Device, on bool) error {
	err := f.did("ipv6 %s %v", d.Name, on)
	f.ipv6Off[d.Name] = !on
	return err
}

func (f *fakeDevices) ARPIgnore(d hostdev.Device) (string, error) {
	return cmp.Or(f.arp[d.Name], "0"), nil
}

func (f *fakeDevices) SetARPIgnore(d hostdev.Device, value string) error {
	err := f.did("arp_ignore %s %s", d.Name, value)
	f.arp[d.Name] = value
	return err
}

func (f *fakeDevices) Speed(name string) float64 { return f.speed[name] }

func (f *fakeDevices) Offloads(d hostdev.Device) (map[hostdev.Offload]hostdev.OffloadState, error) {
	return maps.Clone(f.offload[d.Name]), nil
}

func (f *fakeDevices) SetOffload(d hostdev.Device, o hostdev.Offload, on bool) error {
	err := f.did("%s %s %v", o, d.Name, on)
	if err == nil {
		f.offload[d.Name][o] = hostdev.OffloadState{On: on}
	}
	return err
}

// fakeKernel records its calls.
type fakeKernel struct {
	macTable        int // 0 = the default
	applied         []binding.Desired
	fail            error
	lost            bool              // attachments no longer exist
	staged, flipped func()            // called before and after the flip
	at              dataplane.Instant // instant of the next flips; zero: count them
	left            int               // devices that wait to be attached
	reteamed        int
	attached        int // how often devices were attached
	awake           map[plan.PortID]uint32
	succeeded       [][3]plan.PortID
	macs            []observe.MACEntry
	macsRead        int   // how often the table was listed
	forgets         []int // the lengths of the lists given to ForgetMACs
	speakers        []observe.Speaker
	chains          map[uint32]dataplane.Chain // on devices that have other programs too
	counters        map[plan.PortID]observe.Counters
	learned         map[plan.PortID][]observe.MACEntry // given by Travel
	knows           []observe.MACEntry                 // MACs that Learn does not take
	spent           map[plan.PortID][]observe.Spent
}

func (k *fakeKernel) Change(d binding.Desired, ready func() error) (dataplane.Instant, error) {
	if k.fail != nil {
		return dataplane.Instant{}, k.fail
	}
	if ready == nil {
		ready = func() error { return nil }
	}
	if err := ready(); err != nil {
		return dataplane.Instant{}, err
	}
	if k.staged != nil {
		k.staged()
	}
	k.applied = append(k.applied, d)
	if k.flipped != nil {
		k.flipped()
	}
	if k.at.After != 0 {
		return k.at, nil
	}
	return dataplane.Instant{Before: int64(len(k.applied)), After: int64(len(k.applied))}, nil
}

func (k *fakeKernel) Attach(time.Duration) (int, error) {
	k.attached++
	return k.left, nil
}

// Reteam takes a Desired that has the plan, the ports and the devices of the last change.
func (k *fakeKernel) Reteam(d binding.Desired) (dataplane.Instant, error) {
	k.reteamed++
	return k.Change(d, nil)
}

func (k *fakeKernel) Waits() dataplane.Waits { return fakeWaits{k} }

type fakeWaits struct{ *fakeKernel }

func (k fakeWaits) End(id plan.PortID, wait uint32) error {
	if k.awake == nil {
		k.awake = map[plan.PortID]uint32{}
	}
	k.awake[id] = max(k.awake[id], wait)
	return nil
}

func (k fakeWaits) Over() (map[plan.PortID]uint32, error) { return k.awake, nil }

func (k fakeWaits) Begun() (map[plan.PortID]uint32, error) {
	all := map[plan.PortID]uint32{}
	if len(k.applied) == 0 || k.lost {
		return all, nil
	}
	for id, f := range k.last().Facts {
		if f.Waits() {
			all[id] = f.Wait
		}
	}
	return all, nil
}

func (k *fakeKernel) Travel() dataplane.Travel { return fakeTravel{k} }

type fakeTravel struct{ *fakeKernel }

func (k fakeTravel) MACs(id plan.PortID) (func() ([]observe.MACEntry, error), error) {
	list := k.learned[id]
	if list == nil {
		return nil, nil
	}
	return func() ([]observe.MACEntry, error) { return list, nil }, nil
}

func (k fakeTravel) Settled() error { return nil }

func (k fakeTravel) Learn(id plan.PortID, list []observe.MACEntry) ([]observe.MACEntry, error) {
	if k.learned == nil {
		k.learned = map[plan.PortID][]observe.MACEntry{}
	}
	taken := slices.DeleteFunc(slices.Clone(list), func(e observe.MACEntry) bool {
		return slices.ContainsFunc(k.knows, func(o observe.MACEntry) bool { return o.MAC == e.MAC && o.VLAN == e.VLAN })
	})
	k.learned[id] = append(k.learned[id], taken...)
	return taken, nil
}

func (k fakeTravel) Spent(id plan.PortID) ([]observe.Spent, error) { return k.spent[id], nil }

func (k fakeTravel) Spend(id plan.PortID, list []observe.Spent) (bool, error) {
	if k.spent == nil {
		k.spent = map[plan.PortID][]observe.Spent{}
	}
	k.spent[id] = list
	return true, nil
}

func (*fakeKernel) Bindings() ([]overlay.Bound, error)                            { return nil, nil }
func (*fakeKernel) Neighbours() (*dataplane.NeighbourReader, error)               { return nil, nil }
func (*fakeKernel) Unbind([]overlay.Bound) error                                  { return nil }
func (*fakeKernel) Bind(string, bool, []overlay.Binding, []overlay.Address) error { return nil }
func (*fakeKernel) Locate(string, bool, []overlay.Location, []overlay.Key) error  { return nil }

func (*fakeKernel) Reached(string) overlay.Reach { return overlay.Reach{} }

func (*fakeKernel) Number(compile.OverlaySegment) (uint16, bool) { return 1, true }

func (k *fakeKernel) Succeed(port, successor, left plan.PortID) error {
	k.succeeded = append(k.succeeded, [3]plan.PortID{port, successor, left})
	return nil
}
func (k *fakeKernel) Unattached() map[uint32]error { return nil }
func (k *fakeKernel) Chain(index uint32) (dataplane.Chain, error) {
	c, ok := k.chains[index]
	if !ok {
		c.Ours = true
	}
	return dataplane.Chain{Ours: c.Ours, Strangers: slices.Clone(c.Strangers), Exchanged: c.Exchanged}, nil
}
func (k *fakeKernel) Adopted(index uint32) bool {
	if k.lost || len(k.applied) == 0 {
		return false
	}
	for _, at := range k.last().Attachments {
		if at.Ifindex == index {
			return true
		}
	}
	return false
}
func (k *fakeKernel) RetryAttach() {}

func (k *fakeKernel) Snapshot() (*dataplane.Snapshot, error) {
	return nil, errors.New("there is no kernel here")
}

func (k *fakeKernel) Counters() (map[plan.PortID]observe.Counters, error) { return k.counters, nil }
func (k *fakeKernel) CounterReader() *dataplane.CounterReader {
	return dataplane.FixedCounters(k.counters)
}
func (k *fakeKernel) Speakers() ([]observe.Speaker, error) { return k.speakers, nil }

func (k *fakeKernel) MACsAt() ([]observe.MACEntry, time.Time, error) {
	list, err := k.MACs()
	return list, time.Now(), err
}

func (k *fakeKernel) MACs() ([]observe.MACEntry, error) {
	k.macsRead++
	return slices.Clone(k.macs), nil
}
func (k *fakeKernel) ForgetMACs(list []observe.MACEntry) (removed []observe.MACEntry, err error) {
	k.forgets = append(k.forgets, len(list))
	gone := make(map[observe.MACEntry]bool, len(list))
	for _, e := range list {
		gone[e] = true
	}
	k.macs = slices.DeleteFunc(k.macs, func(e observe.MACEntry) bool {
		if gone[e] {
			removed = append(removed, e)
		}
		return gone[e]
	})
	return removed, nil
}
func (k *fakeKernel) Sweep() (int, error) { return 0, nil }
func (k *fakeKernel) MACTable() int       { return cmp.Or(k.macTable, spec.DefaultMACTable) }
func (k *fakeKernel) Repin() (int, error) { return 0, nil }
func (k *fakeKernel) Close() error        { return nil }

func (k *fakeKernel) last() binding.Desired { return k.applied[len(k.applied)-1] }

// rig is an agent on fakes; the test runs its loop.
type rig struct {
	*Agent
	t      *testing.T
	dev    *fakeDevices
	kernel *fakeKernel
	dir    string
	pinned bool // the kernel has the switch at the next start
}

// newRig starts an agent with that content as its --config file; "" for no file.
func newRig(t *testing.T, content string) *rig {
	t.Helper()
	r := &rig{t: t, dev: newFakeDevices(), kernel: &fakeKernel{}, dir: t.TempDir()}
	if err := r.restart(content); err != nil {
		t.Fatal(err)
	}
	return r
}

// restart starts a new agent on the same devices with the same state directory.
func (r *rig) restart(content string) error {
	r.t.Helper()
	return r.restartBy(func(st *state.State) *givenConfig {
		if content == "" {
			return nil
		}
		return &givenConfig{cfg: parse(r.t, content), src: state.Source{File: "heddle.yaml", Content: content,
			Seen: digest([]byte(content))}, remembers: remains{st}.any()}
	})
}

// restartBy is restart with the file that somebody has read.
func (r *rig) restartBy(read func(*state.State) *givenConfig) error {
	r.t.Helper()
	store, err := state.Open(r.dir)
	if err != nil {
		r.t.Fatal(err)
	}
	st, err := store.Load()
	if err == nil {
		err = takePlace(st, "test")
	}
	if err != nil {
		return err
	}
	r.Agent = newAgent(&shared{name: "test", place: "here", log: slog.New(slog.DiscardHandler), dev: r.dev,
		kernel: r.kernel, store: store, state: st,
		Loop: loop.New(), Complaints: loop.NewComplaints(slog.New(slog.DiscardHandler)),
		events: event.NewBus(keptEvents)})
	given := read(st)
	r.ports.inKernel = r.pinned
	last := st.Config
	fresh, err := r.ports.chooseConfig(given)
	if err != nil {
		return err
	}
	return r.begin(given, last, fresh)
}

func parse(t *testing.T, content string) *spec.Config {
	t.Helper()
	cfg, err := spec.Parse("heddle.yaml", []byte(content))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// command runs one command as the loop would.
func (r *rig) command(f func(context.Context) error) error {
	r.t.Helper()
	done := make(chan error, 1)
	go func() { done <- f(context.Background()) }()
	for {
		select {
		case call := <-r.Calls():
			call()
		case err := <-done:
			return err
		}
	}
}

// follows has the controllers declare that; nil for no controllers.
func (r *rig) follows(cfg *spec.Config) {
	r.definition.Take(&definition.Handed{Config: cfg}, r.definition.Given())
}

// saved returns the state that a new agent would load.
func (r *rig) saved() *state.State {
	r.t.Helper()
	store, err := state.Open(r.dir)
	if err != nil {
		r.t.Fatal(err)
	}
	st, err := store.Load()
	if err != nil {
		r.t.Fatal(err)
	}
	return st
}

func id(name string) plan.PortID { return plan.PortID{Switch: "lab", Name: name} }
