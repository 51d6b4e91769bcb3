package rpc

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/adapters"
	"heddle/internal/controller/part"
	"heddle/internal/platform/store"
)

// vmOf is the VM of these tests.
const vmOf = "6f9619ff-8b86-d011-b42d-00c04fc96401"

// site is a cluster of several controllers, which the test plays: nothing happens that it does not let happen.
type site struct {
	t      *testing.T
	fleets []*fleet
	hosts  map[string]*member
	follow chan struct{} // holds one token for each binding that followed

	mu    sync.Mutex
	moved []string // those bindings
}

func newSite(t *testing.T, controllers int) *site {
	s := &site{t: t, hosts: map[string]*member{}, follow: make(chan struct{}, 16)}
	for range controllers {
		s.fleets = append(s.fleets, s.controller())
	}
	return s
}

// rebinding are static ports that follow their VMs as a test has it.
type rebinding struct {
	adapters.Bindings
	rebind func(b *adapters.Binding, to string, generation uint64)
}

func (r rebinding) Rebind(b *adapters.Binding, _, to string, generation uint64) {
	r.rebind(b, to, generation)
}

// controller is one that has just started, which knows the hosts.
func (s *site) controller() *fleet {
	f := fleetOf(s.t, setOf(s.t, 10))
	for _, name := range []string{"h1", "h2", "h3"} {
		f.take(joins(s.t, "id-"+name, name))
	}
	f.adapters.Bindings = rebinding{f.adapters.Bindings, func(b *adapters.Binding, to string, generation uint64) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.moved = append(s.moved, fmt.Sprintf("%s to %s with %d", b.ID, to, generation))
		s.follow <- struct{}{}
	}}
	return f
}

// at connects a host to a controller with what it has at present.
func (s *site) at(host string, controller int, p *controllerv1.HostPort) {
	s.t.Helper()
	f := s.fleets[controller]
	s.hosts[host] = arrivesWith(s.t, f, host, setOf(s.t, 10), reportOf(p))
}

// reportOf is that of a host with one port, nil for none.
func reportOf(p *controllerv1.HostPort) *controllerv1.HostReport {
	if p == nil {
		return &controllerv1.HostReport{}
	}
	return &controllerv1.HostReport{Ports: []*controllerv1.HostPort{p}}
}

// reports lets a host report that it has a port, nil for none, as the answer to the question of that number.
func (m *member) reports(p *controllerv1.HostPort, answers uint64) {
	m.f.said(m.host, m.conn, &controllerv1.FollowSliceRequest{Report: reportOf(p), Reported: answers})
}

// asked is the number of the question that the host is sent; 0 for none.
func (m *member) asked() uint64 { return m.told().GetReportAnew() }

// told is what the host is told next of its adapters.
func (m *member) told() *controllerv1.FollowSliceResponse {
	return part.Of(m.f.adapters).Objects(m.host.id, m.conn.Conn, nil)
}

// answers lets a host answer what it is asked; without a question nothing happens.
func (s *site) answers(host string, p *controllerv1.HostPort) (asked bool) {
	m := s.hosts[host]
	n := m.asked()
	if n != 0 {
		m.reports(p, n)
	}
	s.tell()
	return n != 0
}

// tell lets the controllers tell one another what is new, until nothing is.
func (s *site) tell() {
	for range 4 {
		for from, a := range s.fleets {
			news := a.adapters.News()
			for to, b := range s.fleets {
				if from == to || len(news) == 0 {
					continue
				}
				b.adapters.Learn(fmt.Sprint("c", from), news)
				a.adapters.Learn(fmt.Sprint("c", to), b.adapters.Running(news))
			}
		}
	}
}

// where is where the port is by what all controllers know, and whether anybody calls it a conflict.
func (s *site) where() (host string, generation uint64, conflict bool) {
	var known []*controllerv1.LocatedHere
	for _, f := range s.fleets {
		known = append(known, locating{f}.here(&controllerv1.LocatePortsRequest{Vm: vmOf, Adapter: "net0"})...)
	}
	for _, p := range (locating{s.fleets[0]}).together(known) {
		host, generation = p.GetHost(), p.GetGeneration()
	}
	for _, m := range s.hosts {
		conflict = conflict || len(m.marks()) > 0
	}
	return host, generation, conflict
}

// is makes sure where the port is.
func (s *site) is(when, host string, generation uint64, conflict bool) {
	s.t.Helper()
	s.resolve()
	if h, g, c := s.where(); h != host || g != generation || c != conflict {
		s.t.Errorf("%s the port is on %q with generation %d, conflict %v; want %q, %d, %v", when, h, g, c, host,
			generation, conflict)
	}
}

// serves is the port of a guest that runs there, waits that of one that does not.
func serves(generation uint64) *controllerv1.HostPort {
	return &controllerv1.HostPort{Switch: "dvs", Name: "p", PortGroup: "web", State: "up", Vm: vmOf, Adapter: "net0",
		Generation: generation}
}

func waiting(generation uint64) *controllerv1.HostPort {
	p := serves(generation)
	p.State, p.Waits = "waiting", true
	return p
}

// sites runs a test with one controller, and with hosts at several.
func sites(t *testing.T, do func(t *testing.T, s *site, at func(host int) int)) {
	for _, controllers := range []int{1, 2, 3} {
		t.Run(fmt.Sprint(controllers, " controllers"), func(t *testing.T) {
			do(t, newSite(t, controllers), func(host int) int { return (host - 1) % controllers })
		})
	}
}

// The port is where the highest generation is, at every step of moves that follow one another over three hosts and
// back, whichever report comes first. A report that is older than the source's silence is no conflict.
func TestS100_TheHighestGenerationIsWhereThePortIs(t *testing.T) {
	sites(t, func(t *testing.T, s *site, at func(int) int) {
		s.at("h1", at(1), serves(1))
		s.at("h2", at(2), nil)
		s.at("h3", at(3), nil)
		s.is("at first", "h1", 1, false)
		generation := uint64(1)
		for round, hop := range [][2]string{{"h1", "h2"}, {"h2", "h3"}, {"h3", "h1"}, {"h1", "h2"}, {"h2", "h1"}} {
			from, to := s.hosts[hop[0]], s.hosts[hop[1]]
			to.reports(waiting(generation-min(generation-1, 1)), 0)
			s.is("while the target waits,", hop[0], generation, false)
			if generation++; round%2 == 0 { // the target's report comes first
				to.reports(serves(generation), 0)
				s.is("before the source says that it is silent,", hop[1], generation, false)
				if !s.answers(hop[0], waiting(generation-1)) {
					t.Error("the source is not asked anew")
				}
				s.is("when the source has been asked,", hop[1], generation, false)
				s.answers(hop[1], serves(generation))
			} else {
				from.reports(waiting(generation-1), 0)
				s.is("while nobody serves the guest,", "", 0, false)
				to.reports(serves(generation), 0)
			}
			s.is("after the move", hop[1], generation, false)
			from.reports(nil, 0)
			s.is("when the source has gone,", hop[1], generation, false)
		}
	})
}

// Two hosts that both say, asked anew, that they run the guest are in conflict, both and no third one. One that answers
// alone marks nobody. It ends when one of them has stopped.
func TestS100_TwoGuestsThatRunAreAConflictOnceBothHaveSaidSoAnew(t *testing.T) {
	for name, generations := range map[string][2]uint64{"one is higher": {1, 2}, "the same": {3, 3}} {
		t.Run(name, func(t *testing.T) {
			sites(t, func(t *testing.T, s *site, at func(int) int) {
				g := max(generations[0], generations[1])
				where := "h2"
				if generations[0] == generations[1] {
					where = ""
				}
				s.at("h1", at(1), serves(generations[0]))
				s.at("h2", at(2), serves(generations[1]))
				s.is("before anybody was asked", where, g, false)
				s.answers("h1", serves(generations[0]))
				s.is("when one has answered,", where, g, false)
				s.answers("h2", serves(generations[1]))
				s.is("when both have answered,", where, g, true)
				for own, other := range map[string]string{"h1": "h2", "h2": "h1"} {
					for _, m := range s.hosts[own].marks() {
						if !strings.Contains(m.Text, "runs on host "+other+" too") {
							t.Errorf("%s is told %q", own, m.Text)
						}
					}
				}
				for n := range 2 { // nobody is asked again and again
					s.tell()
					if name := fmt.Sprint("h", n+1); s.hosts[name].asked() != 0 {
						t.Error(name, "is asked again")
					}
				}
				s.hosts["h1"].reports(waiting(generations[0]), 0)
				s.is("when one has stopped,", "h2", generations[1], false)
				s.hosts["h1"].reports(serves(g+1), 0)
				s.is("when it begins anew,", "h1", g+1, false)
			})
		})
	}
}

// A controller that has just started is right from the first reports, in whatever order they come: of a move that
// came to its end, and of guests that run at once.
func TestS100_AControllerThatStartsIsRightFromTheFirstReports(t *testing.T) {
	for _, order := range [][]string{{"h1", "h2"}, {"h2", "h1"}} {
		t.Run(order[0]+" first", func(t *testing.T) {
			s := newSite(t, 1)
			has := map[string]*controllerv1.HostPort{"h1": waiting(4), "h2": serves(5)}
			for _, host := range order {
				s.at(host, 0, has[host])
			}
			s.is("after the start", "h2", 5, false)
			s.fleets[0] = s.controller()
			has["h1"] = serves(4)
			for _, host := range order {
				s.at(host, 0, has[host])
			}
			s.is("with two guests, before they are asked,", "h2", 5, false)
			for _, host := range order {
				s.answers(host, has[host])
			}
			s.is("with two guests", "h2", 5, true)
			s.fleets[0].leave(s.hosts["h2"].host, s.hosts["h2"].conn)
			s.at("h2", 0, nil)
			s.is("when one host comes back without it,", "h1", 4, false)
		})
	}
}

// Hosts that say no generations are judged as before: at once, unless one of them says that its guest came
// by a migration.
func TestS100_HostsWithoutGenerationsAreJudgedAsBefore(t *testing.T) {
	for name, c := range map[string]struct {
		first, second uint64
		arrived       bool
	}{
		"neither says one": {0, 0, false}, "one does": {0, 3, false}, "the other one does": {3, 0, false},
		"by a migration": {0, 0, true}, "by a migration, one says one": {1, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, 1)
			s.at("h1", 0, serves(c.first))
			p := serves(c.second)
			p.Arrived = c.arrived
			s.at("h2", 0, p)
			if _, _, conflict := s.where(); conflict == c.arrived {
				t.Errorf("conflict: %v", conflict)
			}
		})
	}
}

// boundAt makes the adapter's static port bound to a host, with a generation.
func (s *site) boundAt(f *fleet, host string, generation uint64) {
	k := store.Key{Kind: store.KindPorts, Name: "dvs/web/3"}
	doc := fmt.Sprintf(`{"next":1,"bound":{"96":{"binding":{"host":"id-%s","vm":%q,"adapter":"net0",`+
		`"generation":%d}}}}`, host, vmOf, generation)
	f.take(store.Batch{Events: []store.Event{{Key: k, Object: &store.Object{Key: k, Doc: []byte(doc)}}}})
}

// followed waits until as many bindings have followed, and says which.
func (s *site) followed(n int) []string {
	s.t.Helper()
	for {
		s.mu.Lock()
		list := slices.Clone(s.moved)
		s.mu.Unlock()
		if len(list) >= n {
			return list
		}
		select {
		case <-s.follow:
		case <-s.t.Context().Done():
			s.t.Fatal(s.t.Context().Err())
		}
	}
}

// A static port is bound where the target says that it serves the guest with a higher generation, whatever the source
// has said last, and a report from before brings it back nowhere. A host that says so anew is believed.
func TestS100_AStaticPortFollowsTheHighestGeneration(t *testing.T) {
	s := newSite(t, 1)
	f := s.fleets[0]
	s.boundAt(f, "h1", 0)
	s.at("h1", 0, serves(1))
	s.at("h2", 0, waiting(1))
	s.hosts["h2"].reports(serves(2), 0) // h1's report that it serves the guest is older
	if got := s.followed(1); len(got) != 1 || got[0] != "96 to h2 with 2" {
		t.Fatalf("%q", got)
	}
	s.boundAt(f, "h2", 2)
	s.hosts["h2"].reports(waiting(2), 0) // and away again, to a host that says so in a moment
	if got := s.followed(1); len(got) != 1 {
		t.Errorf("an old report brings the port back: %q", got)
	}
	if !s.answers("h1", serves(1)) {
		t.Error("h1 is not asked whether the guest runs there")
	}
	if got := s.followed(2); len(got) != 2 || got[1] != "96 to h1 with 1" {
		t.Errorf("the guest runs on h1 after all: %q", got)
	}
}

// The real client of a host answers what it is asked anew, and people read where the port is.
func TestS100_HostsAreAskedAnewBeforeTheyAreInConflict(t *testing.T) {
	c := newController(t)
	c.define(clusterText)
	first, second := c.up("esx1"), c.up("esx2")
	has := func(m *machine, p *controllerv1.HostPort) {
		m.mu.Lock()
		m.report = &controllerv1.HostReport{Ports: []*controllerv1.HostPort{p}}
		m.mu.Unlock()
		m.client.Changed()
	}
	where := func() *controllerv1.LocatedPort {
		list := must(moveCallsAt(c.Server).LocatePorts(t.Context(),
			&controllerv1.LocatePortsRequest{Vm: strings.ToUpper(vmOf)}))(t).GetPorts()
		if len(list) != 1 {
			return nil
		}
		return list[0]
	}
	has(first, serves(1))
	c.await("the port is on esx1", func() bool { return where().GetHost() == "esx1" })
	has(second, serves(2))
	c.await("both are in conflict", func() bool {
		p := where()
		return p.GetHost() == "esx2" && strings.Contains(p.GetConflict(), "too, and no migration explains that")
	})
	if got := c.log.count("a conflict", "esx1 too"); got != 1 {
		t.Errorf("%d lines say that esx2 is in conflict with esx1", got)
	}
	has(first, waiting(1))
	c.await("nobody is", func() bool { return where().GetConflict() == "" })
	p := where()
	if i := p.GetInstances(); p.GetGeneration() != 2 || len(i) != 2 || i[0].GetHost() != "esx2" || !i[0].GetActive() ||
		i[1].GetActive() || i[1].GetState() != "waiting" || i[1].GetWhy() == "" {
		t.Errorf("%v", p)
	}
	second.stop()
	c.await("the host is away", func() bool { return where().GetHost() == "" })
	if i := where().GetInstances(); len(i) != 2 || !i[0].GetStale() || !i[0].GetActive() {
		t.Errorf("when the host is away: %v", i)
	}
	for name, q := range map[string]*controllerv1.LocatePortsRequest{"the port": {Port: "p"},
		"the adapter": {Vm: vmOf, Adapter: "net0"}} {
		if got := must(moveCallsAt(c.Server).LocatePorts(t.Context(), q))(t).GetPorts(); len(got) != 1 ||
			len(got[0].GetInstances()) != 2 {
			t.Errorf("%s: %v", name, got)
		}
	}
	if _, err := moveCallsAt(c.Server).LocatePorts(t.Context(),
		&controllerv1.LocatePortsRequest{Adapter: "net0"}); err == nil {
		t.Error("no VM and no port, and no error")
	}
}
