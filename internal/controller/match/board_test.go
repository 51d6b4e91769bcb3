package match

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/flaps"
	"heddle/internal/controller/part"
	"heddle/internal/platform/peers"
	"heddle/internal/slice"
)

const (
	movedVM   = "6f9619ff-8b86-d011-b42d-00c04fc96499"
	firstMove = "00112233445566778899aabbccddeeff"
)

// bench is a board, what its controller knows, and a clock that the test sets.
type bench struct {
	*Board
	known Known
	now   time.Time
	log   bytes.Buffer
}

// newBench has a board with these hosts, each of which serves port group web.
func newBench(hosts ...string) *bench {
	b := &bench{now: time.Unix(1_700_000_000, 0),
		known: Known{Ports: map[part.Adapter][]Port{}, Bound: map[part.Adapter]string{},
			Content: map[string]*slice.Set{}}}
	b.Board = New(Options{Log: slog.New(slog.NewTextHandler(&b.log, nil)), Linger: 30 * time.Second,
		Known: func([]part.Adapter, []string) Known { return b.known }, Flaps: flaps.NewHub(),
		Now: func() time.Time { return b.now }})
	for _, id := range hosts {
		b.Joined(id, "name of "+id)
		b.known.Content[id] = serving("dvs/web")
	}
	return b
}

// serving is the content of a host that serves a port group.
func serving(group string) *slice.Set {
	set := &slice.Set{}
	set.Put(slice.Object{Key: slice.Key{Kind: slice.PortGroup, Name: group}, Doc: []byte("{}")})
	return set
}

// connects has a host connect with these offers.
func (b *bench) connects(id string, offers *controllerv1.HostOffers) *part.Conn {
	c := &part.Conn{Poke: func() {}}
	b.Connected(id, c, &controllerv1.FollowSliceRequest{Offers: offers})
	return c
}

// offers has a host offer these.
func (b *bench) offers(id string, c *part.Conn, offers *controllerv1.HostOffers) {
	b.Hear(id, c, &controllerv1.FollowSliceRequest{Offers: offers})
}

// reports has hosts have the port of the VM that moves.
func (b *bench) reports(ports ...Port) {
	b.known.Ports[moved()] = ports
	b.Match()
}

func moved() part.Adapter { return part.AdapterOf(movedVM, "eth0") }

func portOf(host string, generation uint64, runs bool) Port {
	return Port{Host: host, Switch: "dvs", Group: "web", Generation: generation, Runs: runs}
}

// told is what a host is told next by a connection; nil for nothing new.
func (b *bench) told(id string, c *part.Conn) *controllerv1.HostMoves {
	m := &controllerv1.FollowSliceResponse{}
	b.Objects(id, c, func() *controllerv1.FollowSliceResponse { return m })
	return m.GetMoves()
}

// takesOver is an offer for the port of the VM that moves, by a host that has two addresses.
func takesOver(edit func(*controllerv1.MoveOffer)) *controllerv1.HostOffers {
	o := &controllerv1.MoveOffer{Move: firstMove, Vm: strings.ToUpper(movedVM), Adapter: "eth0", Switch: "dvs",
		Name: "vm1/eth0", PortGroup: "web", Addresses: []string{"192.0.2.1:7413", "name:7413", "[2001:db8::1]:7413"}}
	if edit != nil {
		edit(o)
	}
	return &controllerv1.HostOffers{Offers: []*controllerv1.MoveOffer{o}}
}

func TestS104_OffersAreBounded(t *testing.T) {
	b := newBench("h1")
	many := &controllerv1.HostOffers{}
	for range mostOffers + 1 {
		many.Offers = append(many.Offers, takesOver(nil).GetOffers()...)
	}
	bad := []func(o *controllerv1.MoveOffer){
		func(o *controllerv1.MoveOffer) { o.Move = "x" },
		func(o *controllerv1.MoveOffer) { o.Move = strings.ToUpper(firstMove) },
		func(o *controllerv1.MoveOffer) { o.Vm = "vm1" },
		func(o *controllerv1.MoveOffer) { o.Adapter = "" },
		func(o *controllerv1.MoveOffer) { o.Adapter = strings.Repeat("x", longestName+1) },
		func(o *controllerv1.MoveOffer) { o.Name = strings.Repeat("x", longestName+1) },
	}
	c := b.connects("h1", many)
	if n := len(b.hosts["h1"].offers); n != mostOffers {
		t.Errorf("%d offers count", n)
	}
	for i, edit := range bad {
		if b.offers("h1", c, takesOver(edit)); len(b.hosts["h1"].offers) != 0 {
			t.Errorf("%d: %v counts", i, b.hosts["h1"].offers)
		}
	}
	b.offers("h1", c, takesOver(func(o *controllerv1.MoveOffer) {
		o.Addresses = append(slices.Repeat([]string{"192.0.2.1:7413"}, mostAt), "192.0.2.2:7413", "192.0.2.1:0")
	}))
	if list := b.hosts["h1"].offers; len(list) != 1 || len(list[0].GetAddresses()) != mostAt {
		t.Errorf("%v", list)
	}
	if n := strings.Count(b.log.String(), "cannot be understood"); n != 1 {
		t.Errorf("%d lines in the log:\n%s", n, b.log.String())
	}
}

// A target hears of the generations of other hosts only, whatever it reports itself.
func TestS100_ATargetsOwnGenerationDoesNotCount(t *testing.T) {
	b := newBench("source", "target")
	b.connects("source", nil)
	to := b.connects("target", takesOver(nil))
	for own := range uint64(4) {
		b.reports(portOf("source", 1, false), portOf("target", 2+own, true))
		if list := b.moves["target"].GetExpected(); len(list) != 1 || list[0].GetGeneration() != 1 ||
			list[0].GetHost() != "source" {
			t.Errorf("with generation %d at the target: %v", 2+own, list)
		}
	}
	if b.told("target", to) == nil || b.told("target", to) != nil {
		t.Error("a connection is told something twice, or nothing at all")
	}
}

// A target that loses its controller still counts, until it has been away for long.
func TestS79_AnOfferOutlivesTheConnectionForAWhile(t *testing.T) {
	b := newBench("source", "target")
	from := b.connects("source", nil)
	to := b.connects("target", takesOver(nil))
	b.reports(portOf("source", 3, true))
	if got := b.told("source", from); len(got.GetOrders()) != 1 {
		t.Fatalf("the source is told %v", got)
	}
	b.Disconnected("target", to)
	b.Match()
	if got := b.told("source", from); got != nil {
		t.Errorf("when the target lost its controller the source is told %v", got)
	}
	b.now = b.now.Add(b.Linger)
	b.forget(nil)
	b.Match()
	if got := b.told("source", from); got == nil || len(got.GetOrders()) != 0 {
		t.Errorf("when the target was away for long the source is told %v", got)
	}
}

// An offer that comes while a match is under way is left for the next one, which it has asked for; what was found for
// others stays.
func TestAnOfferThatNobodyWasAskedAboutWaits(t *testing.T) {
	b := newBench("source", "target")
	b.connects("source", nil)
	b.connects("target", takesOver(nil))
	b.known.Ports[moved()] = []Port{portOf("source", 3, true)}
	b.bring(b.known, nil)
	if len(b.moves) != 0 || !b.wanted[moved()] || len(b.wake) != 1 {
		t.Errorf("moves %v, wanted %v, %d looks", b.moves, b.wanted, len(b.wake))
	}
	if b.Match(); len(b.moves["target"].GetExpected()) != 1 {
		t.Errorf("%v", b.moves)
	}
}

// A report that comes after the ports of the first offer were asked about, and before what was found is taken in, is
// looked at again: nobody else would ask.
func TestAReportBetweenQuestionAndAnswerIsLookedAt(t *testing.T) {
	b := newBench("source", "target")
	source := b.connects("source", nil)
	b.connects("target", takesOver(nil))
	_, _, asked := b.concerned()
	<-b.wake // that of the offer
	b.Hear("source", source, &controllerv1.FollowSliceRequest{Report: &controllerv1.HostReport{}})
	if len(b.wake) != 1 {
		t.Error("nobody looks at the report")
	}
	b.bring(Known{}, asked)
}

// What a connection says that another one has replaced counts no more, nor does its end.
func TestAReplacedConnectionSaysNothing(t *testing.T) {
	b := newBench("target")
	old := b.connects("target", takesOver(nil))
	b.connects("target", takesOver(nil))
	b.offers("target", old, nil)
	b.Disconnected("target", old)
	if h := b.hosts["target"]; len(h.offers) != 1 || h.conn == nil {
		t.Errorf("%d offers, connection %v", len(h.offers), h.conn)
	}
}

// What another controller says counts until it has not said it for long, and is asked for by nobody without offers.
func TestLearn_ForgetsAControllerThatIsGone(t *testing.T) {
	b := newBench("source", "target")
	from := b.connects("source", nil)
	said := &controllerv1.SharedMoves{Offers: []*controllerv1.SharedOffer{{Host: "target", Source: "source",
		Offer: checked(takesOver(nil).GetOffers()[0])}}}
	b.Learn("c9", proto.CloneOf(said))
	b.reports(portOf("source", 2, true))
	if got := b.told("source", from); len(got.GetOrders()) != 1 {
		t.Fatalf("the source is told %v", got)
	}
	if now, _ := b.SharedFor("c9"); len(now.GetPorts()) != 1 || !now.GetPorts()[0].GetRuns() ||
		now.GetPorts()[0].GetGeneration() != 2 {
		t.Errorf("the controller that asked is told %v", now)
	}
	if now, _ := b.SharedFor("c8"); !empty(now) {
		t.Errorf("a controller that did not ask is told %v", now)
	}
	b.forget([]peers.Controller{{ID: "c9"}})
	b.Match()
	if got := b.told("source", from); got != nil {
		t.Errorf("the source is told %v", got)
	}
	b.forget(nil)
	b.Match()
	if got := b.told("source", from); got == nil || len(got.GetOrders()) != 0 {
		t.Errorf("the source is told %v", got)
	}
}
