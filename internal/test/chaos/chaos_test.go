package chaos

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/lab/netns"
	"heddle/internal/spec"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/cable"
	"heddle/internal/test/testkit/realhost"
)

// frameEvery is the time between two frames of a stream. All of them and those of other tests share the queues of few
// CPUs, which a busy machine does not empty for some tenths of a second.
const frameEvery = 4 * time.Millisecond

// checkTime bounds the check of a history.
const checkTime = 2 * time.Minute

// lasting is how long a fleet is tormented: as long as HEDDLE_SOAK says, or a time that a test run can spare.
func lasting(t *testing.T, otherwise time.Duration) time.Duration {
	t.Helper()
	text := os.Getenv("HEDDLE_SOAK")
	if text == "" {
		return otherwise
	}
	length, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("HEDDLE_SOAK: %v", err)
	}
	return length
}

// seedOf is the seed in HEDDLE_SEED, or another one each time.
func seedOf(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("HEDDLE_SEED")
	if text == "" {
		return uint64(time.Now().UnixNano())
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("HEDDLE_SEED: %v", err)
	}
	return seed
}

// Controllers with etcd inside, agents and their network are killed and cut off at random while the definition and
// static ports change under traffic, and VMs move from host to host. No change that was acknowledged is lost, none is
// half active, all hosts follow in the end, the history is linearizable, no frame is lost, and the port of a VM that
// moves speaks on one host at a time, with all that it has counted.
func TestS83_S100_S103_KillsAndCutsLoseNoChangeAndNoFrame(t *testing.T) {
	torment(t, Fleet{Controllers: 3, Hosts: 4}, lasting(t, time.Minute))
}

// The same with an etcd cluster of its own beside the controllers, whose members are killed as well.
func TestS83_S100_S103_KillsAndCutsWithAnOutsideEtcd(t *testing.T) {
	testkit.Tool(t, "etcd", "curl")
	torment(t, Fleet{Controllers: 3, Hosts: 4, Members: 3}, lasting(t, 20*time.Second))
}

// torment runs a plan on a fleet and says what was wrong.
func torment(t *testing.T, fleet Fleet, length time.Duration) {
	t.Helper()
	testkit.Root(t)
	testkit.Tool(t, "nft")
	seed := seedOf(t)
	t.Logf("seed %d: %v", seed, length)
	r := newRig(t, fleet, rand.New(rand.NewPCG(seed, 1)))
	t.Cleanup(func() {
		if t.Failed() {
			r.keep(seed)
		}
	})
	first := r.begin()
	drops := r.drops()
	streams := r.traffic()
	began := r.history.Now()
	t.Logf("the fleet is up after %v", began.Round(time.Millisecond))
	cancel, ended := r.changes()
	r.suffer(Plan(seed, length, fleet), length)
	healed := time.Now()
	cancel()
	r.converges()
	t.Logf("all hosts follow %v after the last fault", time.Since(healed).Round(time.Millisecond))
	ended()
	r.told(began)
	r.converges() // what was asked last may have been done since
	r.agree()
	r.tokensAre()
	r.arrived(streams, drops)
	for _, n := range r.nomads {
		n.located()
	}
	calls := r.history.Calls()
	t.Logf("everything is compared after %v", r.history.Now().Round(time.Millisecond))
	if err := CheckDefinition(calls, first, checkTime); err != nil {
		t.Errorf("the definition: %v", err)
	}
	if err := CheckPorts(calls, fixedPorts, checkTime); err != nil {
		t.Errorf("static ports: %v", err)
	}
	t.Logf("the history is checked after %v", r.history.Now().Round(time.Millisecond))
}

// drops is how many frames the machine's own queues have lost so far.
func (r *rig) drops() uint64 {
	r.t.Helper()
	n, err := cable.Dropped()
	if err != nil {
		r.t.Fatal(err)
	}
	return n
}

// arrived ends the streams. All frames have come but for those that the machine has dropped on some cable, which the
// kernel counts.
func (r *rig) arrived(streams map[string]*cable.Stream, dropsBefore uint64) {
	r.t.Helper()
	var lost uint64
	for what, s := range streams {
		sent, received := s.Stop()
		r.t.Logf("%s: %d of %d frames came", what, received, sent)
		lost += sent - received
	}
	switch drops := r.drops() - dropsBefore; {
	case lost > drops:
		r.t.Errorf("%d frames are lost, and the machine's queues have dropped %d", lost, drops)
	case drops > 0:
		r.t.Logf("%d frames are lost; the machine was so busy that its queues have dropped %d", lost, drops)
	}
}

// traffic is numbered frames: between hosts in a port group that stays, and on each host between two port groups that
// have one VLAN, which changes: a host that had half of a change active would lose frames.
func (r *rig) traffic() map[string]*cable.Stream {
	r.t.Helper()
	all := map[string]*cable.Stream{}
	for i, h := range r.hosts {
		if i%2 == 0 {
			to := r.hosts[i+1]
			all[h.name+" to "+to.name] = cable.StartEvery(r.t, h.guests["p-web"], to.guests["p-web"],
				guestMAC(i, 0), guestMAC(i+1, 0), frameEvery)
		}
		all["two port groups on "+h.name] = cable.StartEvery(r.t, h.guests["p-left"], h.guests["p-right"],
			guestMAC(i, 1), guestMAC(i, 2), frameEvery)
	}
	return all
}

// changes begins to change everything, until cancel is called; ended waits for the calls that are under way then.
func (r *rig) changes() (cancel, ended func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for i, c := range r.controllers {
		all.Go(func() { r.defines(ctx, i, c) })
		all.Go(func() { r.looks(ctx, 20+i, c) })
		for caller := range tokenCallers {
			all.Go(func() { r.mint(ctx, caller, c) })
		}
	}
	for _, h := range r.hosts {
		for k, device := range places {
			all.Go(func() { r.claims(ctx, place{h, 100 + len(places)*h.number + k, device}) })
		}
		all.Go(func() { r.watches(ctx, h) })
	}
	all.Go(func() { r.tidies(ctx, 30) })
	for _, n := range r.nomads {
		all.Go(func() { n.wanders(ctx) })
	}
	r.t.Cleanup(func() { // of a test that has failed
		cancel()
		all.Wait()
	})
	return cancel, all.Wait
}

// looks reads the definition at a controller again and again.
func (r *rig) looks(ctx context.Context, client int, c *realhost.Controller) {
	for wait(ctx, 4*pause) {
		r.reads(ctx, client, c)
	}
}

// watches looks whether a host ever has half of a change.
func (r *rig) watches(ctx context.Context, h *node) {
	for wait(ctx, 2*pause) {
		s, err := h.State(ctx)
		if err != nil {
			continue // it is killed now and then
		}
		vlans := map[string]bool{}
		for _, g := range s.PortGroups {
			if g.Name == "left" || g.Name == "right" {
				vlans[g.VLAN.String()] = true
			}
		}
		for _, p := range s.Ports {
			if p.PortGroup == "left" || p.PortGroup == "right" {
				vlans[p.VLAN.String()] = true
			}
		}
		if len(vlans) > 1 {
			r.t.Errorf("%s has half of a change: VLANs %v", h.name, slices.Collect(maps.Keys(vlans)))
		}
	}
}

// suffer has the faults of a plan happen within a time.
func (r *rig) suffer(plan []Fault, length time.Duration) {
	r.t.Helper()
	type step struct {
		at time.Duration
		do func()
	}
	var steps []step
	for _, f := range plan {
		var end func()
		steps = append(steps, step{f.At, func() { end = r.begins(f) }}, step{f.Ends(), func() { end() }})
	}
	slices.SortStableFunc(steps, func(a, b step) int { return int(a.at - b.at) })
	start := time.Now()
	for _, s := range steps {
		time.Sleep(time.Until(start.Add(s.at))) // the instant is what is tried
		s.do()
	}
	time.Sleep(time.Until(start.Add(length))) // everything changes for that long
	counts := map[Kind]int{}
	for _, f := range plan {
		counts[f.Kind]++
	}
	r.t.Logf("%d faults within %v: %v", len(plan), time.Since(start).Round(time.Millisecond), counts)
}

// begins makes a fault; what it gives ends it.
func (r *rig) begins(f Fault) (end func()) {
	r.t.Helper()
	cut := func(ports ...string) func() {
		r.plugged(false, ports...)
		return func() { r.plugged(true, ports...) }
	}
	switch f.Kind {
	case KillController:
		c := r.controllers[f.Who]
		c.End(syscall.SIGKILL)
		return c.Launch
	case KillAgent:
		h := r.hosts[f.Who]
		h.End(syscall.SIGKILL)
		return func() { h.Start("") }
	case KillMember:
		m := r.members[f.Who]
		m.end()
		return func() { m.start(r.t) }
	case CutController:
		return cut(fmt.Sprintf("c%d", f.Who))
	case CutState:
		c := r.controllers[f.Who]
		r.filter(c.NS, stateFilter)
		return func() { r.filter(c.NS, "delete table inet cut\n") }
	case CutHosts:
		var ports []string
		for i := range len(r.hosts) / 2 {
			ports = append(ports, fmt.Sprintf("h%d", (f.Who+i)%len(r.hosts)))
		}
		return cut(ports...)
	}
	return cut(r.leader())
}

// stateFilter drops what members of an etcd say to each other (7412 is a controller's port for that), and to those who
// call them.
const stateFilter = `table inet cut {
	chain in { type filter hook input priority 0; tcp sport {7412, 2379} drop; tcp dport {7412, 2379} drop; }
	chain out { type filter hook output priority 0; tcp sport {7412, 2379} drop; tcp dport {7412, 2379} drop; }
}
`

// filter has nft carry out a text on a machine.
func (r *rig) filter(ns *netns.NS, text string) {
	r.t.Helper()
	nft := exec.Command("nft", "-f", "-")
	nft.Stdin = strings.NewReader(text)
	var out bytes.Buffer
	nft.Stdout, nft.Stderr = &out, &out
	err := ns.Start(nft)
	if err == nil {
		err = nft.Wait()
	}
	if err != nil {
		r.t.Fatalf("nft %q: %v: %s", text, err, out.String())
	}
}

// leader is the cable of the machine whose etcd leads; that of the first one where nobody does.
func (r *rig) leader() string {
	for i, m := range r.members {
		out, err := m.ns.Output("curl", "-s", "-m", "2", "http://127.0.0.1:2381/metrics")
		if err == nil && strings.Contains(string(out), "\netcd_server_is_leader 1") {
			return fmt.Sprintf("e%d", i)
		}
	}
	if len(r.members) > 0 {
		return "e0"
	}
	for i, c := range r.controllers {
		if c.RoleOf(c.Name) == "leader" {
			return fmt.Sprintf("c%d", i)
		}
	}
	return "c0"
}

// converges waits until all controllers say that all hosts follow.
func (r *rig) converges() {
	r.t.Helper()
	why := ""
	defer func() {
		if r.t.Failed() {
			r.t.Logf("missing last: %s", why)
		}
	}()
	for _, c := range r.controllers {
		c.Await(c.Name+" has all hosts up", func() bool {
			why = r.missing(c)
			return why == ""
		})
	}
}

// missing is what a controller lacks until it has all hosts up, of the newest revision.
func (r *rig) missing(c *realhost.Controller) string {
	list, err := c.Hosts(r.t.Context())
	switch {
	case err != nil:
		return err.Error()
	case list.Stale != "" || len(list.Unreachable) > 0 || len(list.Hosts) != len(r.hosts):
		return fmt.Sprintf("%+v", list)
	}
	for _, h := range list.Hosts {
		if h.State != api.HostUp || h.Stale {
			return fmt.Sprintf("%+v", h)
		}
	}
	return ""
}

// agree compares what all have in the end: the controllers one definition and one list of ports, the hosts what that
// says. A controller that is not sure of what it has says so, and is asked again; what it was sure of is in the
// history,
// which is checked.
func (r *rig) agree() {
	r.t.Helper()
	var wrong []string
	for end := time.Now().Add(checkTime); ; time.Sleep(realhost.Poll) {
		if wrong = r.disagreements(); len(wrong) == 0 {
			return
		}
		if time.Now().After(end) {
			break
		}
	}
	for _, what := range wrong {
		r.t.Error(what)
	}
}

// disagreements are what those have that do not have what others have, nil for nothing.
func (r *rig) disagreements() (wrong []string) {
	r.t.Helper()
	var text string
	for i, c := range r.controllers {
		d, ok := r.reads(r.t.Context(), i, c)
		if !ok {
			wrong = append(wrong, c.Name+" does not say what the definition is")
			continue
		}
		if text == "" {
			text = d.Text
		}
		if d.Text != text {
			wrong = append(wrong, fmt.Sprintf("%s has the definition\n%s\nand others\n%s", c.Name, d.Text, text))
		}
		if _, ok := r.listsAt(r.t.Context(), i, c); !ok {
			wrong = append(wrong, c.Name+" does not list the static ports")
		}
	}
	if len(wrong) > 0 {
		return wrong
	}
	want := map[string]string{}
	d, err := spec.ParseDefinition("definition", []byte(text))
	if err != nil {
		r.t.Fatal(err)
	}
	for _, g := range d.Switches[0].PortGroups {
		if g.Labels["rack"] != "b" {
			want[g.Name] = fmt.Sprintf("access %d", g.VLAN.Access)
		}
	}
	for _, h := range r.hosts {
		s, err := h.State(r.t.Context())
		if err != nil {
			wrong = append(wrong, fmt.Sprintf("%s: %v", h.name, err))
			continue
		}
		got := map[string]string{}
		for _, g := range s.PortGroups {
			got[g.Name] = g.VLAN.String()
		}
		if !maps.Equal(got, want) {
			wrong = append(wrong, fmt.Sprintf("%s has the port groups %v, defined are %v", h.name, got, want))
		}
		for _, p := range s.Ports {
			if p.VLAN.String() != want[p.PortGroup] {
				wrong = append(wrong, fmt.Sprintf("%s has port %s in VLAN %s, defined is %s", h.name, p.Name, p.VLAN,
					want[p.PortGroup]))
			}
		}
	}
	synced, err := r.controllers[0].Sync(r.t.Context(), "", realhost.Patience, false)
	if err != nil || len(synced.Hosts) != len(r.hosts) {
		return append(wrong, fmt.Sprintf("%+v, %v", synced, err))
	}
	for _, h := range synced.Hosts {
		if len(h.Differences) > 0 || h.State != api.HostUp {
			wrong = append(wrong, fmt.Sprintf("%s differs from the definition: %+v", h.Host, h))
		}
	}
	return wrong
}

// told says what was done and what failed.
func (r *rig) told(began time.Duration) {
	counts := map[string]int{}
	done := 0
	for _, c := range r.history.Calls() {
		what := "definition: read"
		switch {
		case c.Ports != nil:
			what = "ports: " + c.Ports.Verb
		case c.Definition.Write:
			what = "definition: change"
		}
		counts[what+", "+string(c.Outcome)]++
		if c.Outcome == Done && what != "definition: read" && what != "ports: "+List {
			done++
		}
	}
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		r.t.Logf("%6d  %s", counts[what], what)
	}
	r.tokens.mu.Lock()
	defer r.tokens.mu.Unlock()
	r.t.Logf("%6d  tokens: made or revoked, of %d", r.tokens.done, r.tokens.asked)
	r.t.Logf("%.0f changes a second", float64(done+r.tokens.done)/(r.history.Now()-began).Seconds())
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, what := range slices.Sorted(maps.Keys(r.problems)) {
		r.t.Logf("%6d  %s", r.problems[what], what)
	}
}
