package fleet

import (
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/lab/netns"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/realhost"
)

// What a machine drops while it is cut off: what controllers say to each other, or what their etcds do (7412 is a
// controller's port for that). Agents are heard all the same.
const (
	cutControllers = `table inet cut {
	chain in { type filter hook input priority 0; ip saddr 10.0.0.100-10.0.0.102 tcp sport 7411 drop;
		ip saddr 10.0.0.100-10.0.0.102 tcp dport 7411 drop; }
	chain out { type filter hook output priority 0; ip daddr 10.0.0.100-10.0.0.102 tcp sport 7411 drop;
		ip daddr 10.0.0.100-10.0.0.102 tcp dport 7411 drop; }
}
`
	cutEtcd = `table inet cut {
	chain in { type filter hook input priority 0; tcp sport 7412 drop; tcp dport 7412 drop; }
	chain out { type filter hook output priority 0; tcp sport 7412 drop; tcp dport 7412 drop; }
}
`
	uncut = "delete table inet cut\n"
)

// filter has nft carry out a text on a machine.
func filter(t *testing.T, ns *netns.NS, text string) {
	t.Helper()
	nft := exec.Command("nft", "-f", "-")
	nft.Stdin = strings.NewReader(text)
	var out strings.Builder
	nft.Stdout, nft.Stderr = &out, &out
	err := ns.Start(nft)
	if err == nil {
		err = nft.Wait()
	}
	if err != nil {
		t.Fatalf("nft %q: %v: %s", text, err, out.String())
	}
}

// agreeing is a change that hosts make together while something goes wrong.
type agreeing struct {
	*fleet
	all    [3]*realhost.Controller
	change int
	// decides is the controller that was asked for the change, asked another one.
	decides, asked *realhost.Controller
	out            *api.Defined
	err            error
	ended          chan struct{}
}

// begins asks for the change, to be made so long after the decision at least.
func (a *agreeing) begins(lead time.Duration) {
	a.ended = make(chan struct{})
	go func() {
		defer close(a.ended)
		a.out, a.err = a.decides.Fleet.Define(a.t.Context(), api.Define{File: "fleet.yaml", Content: bothTo(a.change),
			Wait: time.Minute, Message: "together", Together: &api.Together{Lead: lead, Patience: 20 * time.Second}})
	}()
}

// told waits until hosts have said something once more than before.
func (a *agreeing) told(what string, before map[int]int, hosts ...int) {
	a.t.Helper()
	for _, n := range hosts {
		a.hosts[n].Await(fmt.Sprintf("esx%d says %q", n, what), func() bool { return a.said(what, n) > before[n] })
	}
}

func (a *agreeing) said(what string, n int) int { return strings.Count(a.hosts[n].Log(), what) }

// What an agent says when it has prepared a change, and when it hears of the decision.
const (
	saysReady   = "ready to change together with other hosts"
	saysDecided = "a change together with other hosts is decided"
)

// sayings is how often each host has said something.
func (a *agreeing) sayings(what string) map[int]int {
	all := map[int]int{}
	for n := range a.hosts {
		all[n] = a.said(what, n)
	}
	return all
}

// decidedTogether reports whether the change is part of the definition.
func (a *agreeing) decidedTogether() bool {
	d, err := a.asked.Definition(a.t.Context())
	return err == nil && a.in(d)
}

// in reports whether the change is part of a definition.
func (a *agreeing) in(d *api.Definition) bool {
	return strings.Contains(d.Content, fmt.Sprintf("access: %d", 300+a.change))
}

// decisionPhase is where a change is when something befalls the controller that decides about it.
type decisionPhase struct {
	name string
	// befalls asks for the change, and does what goes wrong.
	befalls func(*agreeing)
	// heals ends that.
	heals func(*agreeing)
	// made: the hosts change, by a decision that counts; otherwise none does.
	made bool
	// unknown: either may be, and the error says so.
	unknown bool
	// says is a part of the error; "" where the call is not answered.
	says string
}

// readyBut has hosts be ready while another one, at that controller, does not answer, which is returned. before is how
// often each host was ready before.
func (a *agreeing) readyBut(at *realhost.Controller) (last int, before map[int]int) {
	a.t.Helper()
	before, last = a.sayings(saysReady), -1
	var others []int
	for n := range a.hosts {
		if where(a.asked)[fmt.Sprintf("esx%d", n)] == at.Name {
			last = n
		} else {
			others = append(others, n)
		}
	}
	if last < 0 {
		a.t.Fatalf("%s has no host", at.Name)
	}
	a.hosts[last].Signal(syscall.SIGSTOP)
	a.begins(time.Second)
	a.told(saysReady, before, others...)
	return last, before
}

// readyWhileCut has all hosts be ready, the last one when what the controller that decides hears is cut.
func (a *agreeing) readyWhileCut(at *realhost.Controller, cut string) {
	a.t.Helper()
	last, before := a.readyBut(at)
	filter(a.t, a.decides.NS, cut)
	a.hosts[last].Signal(syscall.SIGCONT)
	a.told(saysReady, before, last)
}

func (a *agreeing) kill()    { a.decides.End(syscall.SIGKILL) }
func (a *agreeing) restart() { a.decides.Start() }
func (a *agreeing) heal()    { filter(a.t, a.decides.NS, uncut) }

// decidedThen kills the controller when a change is decided about that hosts make some seconds later.
func (a *agreeing) decidedThen(await func()) {
	a.begins(6 * time.Second)
	await()
	a.kill()
	if got := a.having(a.change); len(got) > 0 {
		a.t.Logf("%v have changed already: this shows less than it should", got)
	}
}

func decisionPhases() []decisionPhase {
	restart, heal := (*agreeing).restart, (*agreeing).heal
	return []decisionPhase{
		{name: "it is killed while hosts prepare", heals: restart, befalls: func(a *agreeing) {
			last, _ := a.readyBut(a.decides)
			a.kill()
			a.hosts[last].Signal(syscall.SIGCONT)
		}},
		{name: "it is killed when all hosts are ready", befalls: func(a *agreeing) {
			a.readyWhileCut(a.decides, cutEtcd)
			a.kill()
		}, heals: func(a *agreeing) { a.heal(); a.restart() }},
		{name: "it is killed right after the decision is kept", heals: restart, made: true, befalls: func(a *agreeing) {
			a.decidedThen(func() { a.asked.Await("it is decided", a.decidedTogether) })
		}},
		{name: "it is killed after the decision was sent", heals: restart, made: true, befalls: func(a *agreeing) {
			before := a.sayings(saysDecided)
			a.decidedThen(func() { a.told(saysDecided, before, 0, 1, 2) })
		}},
		{name: "it is cut off from etcd when all hosts are ready", heals: heal, unknown: true,
			says: "is not known", befalls: func(a *agreeing) { a.readyWhileCut(a.decides, cutEtcd) }},
		{name: "it is cut off from other controllers before it asks", heals: heal, says: "is not connected",
			befalls: func(a *agreeing) {
				filter(a.t, a.decides.NS, cutControllers)
				a.begins(time.Second)
			}},
		{name: "it is cut off from other controllers while hosts prepare", heals: heal, says: "has not said",
			befalls: func(a *agreeing) { a.readyWhileCut(a.asked, cutControllers) }},
	}
}

// Whatever befalls the controller that decides about a change that hosts make together, all of them make it or none
// does, and the next change is not in its way.
func TestS101_TheControllerThatDecidesIsKilledOrCutOff(t *testing.T) {
	testkit.Long(t, "kills and cuts off whoever decides, again and again; TestS101_HostsChangeTogetherOrNotAtAll "+
		"has changes together")
	t.Parallel()
	testkit.Tool(t, "nft")
	f, all := newRolledFleet(t)
	change := 0
	for i, p := range decisionPhases() {
		t.Run(p.name, func(t *testing.T) {
			row := *f
			row.t = t
			row.spread(all[0])
			change++
			a := &agreeing{fleet: &row, all: all, change: change, decides: all[i%3], asked: all[(i+1)%3]}
			a.suffers(p)
			if t.Failed() {
				t.FailNow()
			}
		})
	}
}

// suffers has hosts make a change while something befalls who decides about it.
func (a *agreeing) suffers(p decisionPhase) {
	t, stop := a.t, a.neverHalf()
	defer stop()
	p.befalls(a)
	<-a.ended
	t.Logf("the call: %v", a.err)
	if a.err == nil || !strings.Contains(a.err.Error(), p.says) {
		t.Errorf("the call was answered %v, want %q", a.err, p.says)
	}
	p.heals(a)
	for n := range a.hosts {
		name := fmt.Sprintf("esx%d", n)
		a.decides.Await(name+" is up", func() bool { return a.decides.StateOf(name) == api.HostUp })
	}
	made := a.in(a.asked.Certain())
	if made != p.made && !p.unknown {
		t.Errorf("the definition has the change: %v", made)
	}
	if !made {
		if got := a.having(a.change - 1); len(got) != 3 {
			t.Errorf("only %v have what they had, though nothing was decided", got)
		}
		a.begins(time.Second)
		if <-a.ended; a.err != nil || a.out.Together.Hosts != 3 {
			t.Errorf("the change afterwards: %+v, %v", a.out, a.err)
		}
	}
	a.decides.Await("all hosts have the change", func() bool { return len(a.having(a.change)) == 3 })
	a.described(a.decides)
}
