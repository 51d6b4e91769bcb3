package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"heddle/internal/api"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/cable"
)

// nomad is a VM that moves from host to host. Each host has an end for it, at which nothing is sent while it runs
// elsewhere. One goroutine uses it.
type nomad struct {
	r      *rig
	device string // and the name of its port
	vm     string
	mac    [6]byte
	ends   []*cable.End // by host
	on     int          // the host where it runs
	sent   uint64       // frames that it has sent so far
	moves  map[string]int
}

// nomads are how many such VMs there are, framesAtOnce how many frames one sends at each place.
const (
	nomads       = 2
	framesAtOnce = 5
)

// settling bounds how long a step of a move may take: some take until the faults are over.
const settling = 4 * time.Minute

// newNomad makes the ends of a VM that moves.
func (r *rig) newNomad(number int) *nomad {
	r.t.Helper()
	n := &nomad{r: r, device: fmt.Sprintf("p-nomad%d", number),
		vm:  fmt.Sprintf("6f9619ff-8b86-d011-b42d-0000ffff%04x", number),
		mac: [6]byte{2, 0, 0, 1, 0, byte(number)}, on: number % len(r.hosts), moves: map[string]int{}}
	for _, h := range r.hosts {
		ns := testkit.NS(r.t, n.device)
		r.inside(ns, func() error { // or the kernel sends of its own accord, as if the guest ran there
			return os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0)
		})
		r.cable(h.NS, n.device, ns, "eth0")
		n.ends = append(n.ends, cable.Open(r.t, ns, "eth0"))
	}
	return n
}

func (n *nomad) connect() api.Connect {
	q := api.Connect{VM: n.vm, Adapter: "net0"}
	q.Name, q.Switch, q.PortGroup, q.Device = n.device, "dvs", "web", n.device
	q.MAC = fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", n.mac[0], n.mac[1], n.mac[2], n.mac[3], n.mac[4], n.mac[5])
	return q
}

// starts starts the VM.
func (n *nomad) starts() {
	n.r.t.Helper()
	h := n.r.hosts[n.on]
	if _, err := h.Connect(n.r.t.Context(), n.connect()); err != nil {
		n.r.t.Fatal(err)
	}
	h.Await(n.device+" is up", func() bool { return h.portOf(n.device).State == api.Up })
	n.sends()
}

// sends has the VM send where it runs.
func (n *nomad) sends() {
	for range framesAtOnce {
		n.ends[n.on].Send(cable.Frame([6]byte{2, 0, 0, 9, 9, 9}, n.mac, 0, fmt.Sprintf("%s %d", n.device, n.sent)))
		n.sent++
	}
}

// until waits for a condition of a step, whatever is killed meanwhile.
func (n *nomad) until(what string, holds func(context.Context) error) bool {
	ctx, cancel := context.WithTimeout(context.Background(), settling)
	defer cancel()
	var err error
	for first := true; first || wait(ctx, pause); first = false {
		if err = holds(ctx); err == nil {
			return true
		}
	}
	n.r.t.Errorf("%s on %s: %s: %v", n.device, n.r.hosts[n.on].name, what, err)
	return false
}

// speaks counts the hosts at which the port speaks. An agent that is away is waited for.
func (n *nomad) speaks() (list []int) {
	for i, h := range n.r.hosts {
		n.until("its host answers", func(ctx context.Context) error {
			s, err := h.State(ctx)
			if err == nil && slices.ContainsFunc(s.Ports, func(p api.Port) bool {
				return p.Name == n.device && p.Wait == nil
			}) {
				list = append(list, i)
			}
			return err
		})
	}
	return list
}

// instances makes sure that the port speaks at those hosts alone (S100).
func (n *nomad) instances(step string, want ...int) {
	if got := n.speaks(); !slices.Equal(got, want) {
		n.r.t.Errorf("%s, %s: it speaks at the hosts %v, not at %v", n.device, step, got, want)
	}
}

// move is the newest move of the port on a host of which that is this side. It may have begun another one since, to a
// host whose offer was cancelled: a controller hears of that a little later.
func (n *nomad) move(ctx context.Context, host int, side api.MoveSide) (m api.PortMove, err error) {
	list, err := n.r.hosts[host].PortMoves(ctx, api.PortMoveOf{Port: n.device})
	list = slices.DeleteFunc(list, func(m api.PortMove) bool { return m.Side != side })
	if err == nil && len(list) == 0 {
		err = errors.New("no move is known")
	}
	if err == nil {
		m = list[len(list)-1]
	}
	return m, err
}

// wanders has the VM move until ctx ends: there, or there and back, or not at all in the end.
func (n *nomad) wanders(ctx context.Context) {
	for ctx.Err() == nil && !n.r.t.Failed() {
		to := (n.on + 1 + n.r.number(len(n.r.hosts)-1)) % len(n.r.hosts)
		switch n.r.number(4) {
		case 0:
			n.stays(to, false)
		case 1:
			n.stays(to, true)
		default:
			n.goes(to)
		}
		wait(ctx, 2*pause)
	}
}

// prepared has the port wait at a host.
func (n *nomad) prepared(to int) bool {
	return n.until(fmt.Sprintf("prepare on host %d", to), func(ctx context.Context) error {
		_, err := n.r.hosts[to].ConnectIncoming(ctx, api.Incoming{Connect: n.connect()})
		return err
	})
}

// stopped has the VM stop where it runs.
func (n *nomad) stopped() bool {
	return n.until("silence", func(ctx context.Context) error {
		_, err := n.r.hosts[n.on].SilencePort(ctx, api.PortMoveOf{Port: n.device})
		return err
	})
}

// goes moves the VM to a host. It sends there before anybody has told that host anything, and its port leaves the
// source when that knows where it is.
func (n *nomad) goes(to int) {
	from := n.on
	if !n.prepared(to) {
		return
	}
	n.instances("prepared", from)
	if !n.stopped() {
		return
	}
	n.instances("stopped")
	n.on = to
	n.sends()
	arrived := n.until("it arrives", func(ctx context.Context) error {
		m, err := n.move(ctx, to, api.MoveTarget)
		if err == nil && m.Phase != "active" {
			err = fmt.Errorf("%+v", m)
		}
		return err
	})
	if !arrived {
		return
	}
	n.instances("arrived", to)
	known := n.until("the source hears of it", func(ctx context.Context) error {
		there, err := n.move(ctx, to, api.MoveTarget)
		if err != nil {
			return err
		}
		m, err := n.move(ctx, from, api.MoveSource)
		if err == nil && (m.Move != there.Move || m.Phase != "active") {
			err = fmt.Errorf("it comes by move %s: %+v", there.Move, m)
		}
		return err
	})
	if !known || !n.released(from) || !n.whole() {
		return
	}
	n.moves["moved"]++
}

// released has the port go at the host that the VM has left; a second time changes nothing.
func (n *nomad) released(from int) bool {
	return n.until("release", func(ctx context.Context) error {
		err := n.r.hosts[from].ReleaseMovedPort(ctx, api.PortMoveOf{Port: n.device})
		if err == nil {
			err = n.r.hosts[from].ReleaseMovedPort(ctx, api.PortMoveOf{Port: n.device})
		}
		return err
	})
}

// whole waits until the port has all that was ever counted, once.
func (n *nomad) whole() bool {
	return n.until("it has all that was counted", func(ctx context.Context) error {
		all, err := n.r.hosts[n.on].Stats(ctx)
		if err != nil {
			return err
		}
		for _, s := range all {
			for _, c := range s.Counters {
				if s.Name == n.device && c.Name == "packetsInUnicast" && c.Value != n.sent {
					return fmt.Errorf("%d frames are counted, and %d were sent", c.Value, n.sent)
				}
			}
		}
		return nil
	})
}

// stays prepares a move and takes it back, late: after the VM has stopped.
func (n *nomad) stays(to int, late bool) {
	if !n.prepared(to) {
		return
	}
	what := "cancelled"
	if late {
		if what = "failed"; !n.stopped() {
			return
		}
		n.instances("stopped")
		n.sends() // it runs again where it was
		back := n.until("it goes on", func(ctx context.Context) error {
			s, err := n.r.hosts[n.on].State(ctx)
			if err == nil && !slices.ContainsFunc(s.Ports, func(p api.Port) bool {
				return p.Name == n.device && p.Wait == nil
			}) {
				err = errors.New("it is silent")
			}
			return err
		})
		if !back {
			return
		}
	}
	gone := n.until("cancel", func(ctx context.Context) error {
		err := n.r.hosts[to].CancelMove(ctx, api.PortMoveOf{Port: n.device})
		var answer *api.Error
		if errors.As(err, &answer) && answer.Kind == api.NotFound { // an answer was lost, or the host had heard of it
			return nil
		}
		return err
	})
	if gone {
		n.instances(what, n.on)
		n.moves[what]++
	}
}

// located makes sure that all controllers have the port where the VM runs, and its host all that was counted.
func (n *nomad) located() {
	n.r.t.Helper()
	if n.moves["moved"] == 0 { // it had no time for it
		n.goes((n.on + 1) % len(n.r.hosts))
	}
	n.whole()
	n.instances("in the end", n.on)
	for _, c := range n.r.controllers {
		n.until("controller "+c.Name+" has it there", func(ctx context.Context) error {
			got, err := c.Fleet.LocatePorts(ctx, api.LocateQuery{VM: n.vm})
			if err == nil && (len(got.Ports) != 1 || got.Ports[0].Host != n.r.hosts[n.on].name ||
				got.Ports[0].Conflict != "") {
				err = fmt.Errorf("%+v", got)
			}
			return err
		})
	}
	n.r.t.Logf("%s: %v, %d frames", n.device, n.moves, n.sent)
	if err := n.r.hosts[n.on].Disconnect(n.r.t.Context(), api.Disconnect{Port: n.device}); err != nil {
		n.r.t.Error(err)
	}
}
