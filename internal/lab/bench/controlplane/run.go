package controlplane

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"heddle/internal/api"
	"heddle/internal/lab/report"
)

const (
	// patience is how long hosts may take to have a change.
	patience = 5 * time.Minute
	// joiners is how many hosts join at once.
	joiners = 16
	// mostRestarts is how often the controller is killed, without hosts and with them, where there are as many rounds.
	mostRestarts = 3
)

// Run measures clusters of each number of hosts. It leaves nothing behind.
func Run(ctx context.Context, o Options) (*report.Report, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	env := report.Collect(o.Now())
	var all []*result
	done := 0
	for _, n := range o.Hosts {
		m := &measurement{Options: o, result: &result{hosts: n, database: o.Database}, step: func(what string) {
			if o.Progress != nil {
				o.Progress(done, len(o.Hosts)*o.steps(), fmt.Sprintf("%d hosts: %s", n, what))
			}
			done++
		}}
		if err := m.run(ctx); err != nil {
			return nil, fmt.Errorf("%d hosts: %w", n, err)
		}
		all = append(all, m.result)
	}
	return reportOf(env, o, all), nil
}

// measurement is that of one number of hosts.
type measurement struct {
	Options
	*result
	step func(what string)

	process  *process
	crowd    *crowd
	def      definition
	revision int64
	// connected counts the ports that were connected beside those that the hosts have from the beginning.
	connected int
}

// part is a part of a measurement.
type part struct {
	what string
	do   func(context.Context) error
}

// steps is how often a measurement says what it does.
func (o Options) steps() int { return len((&measurement{Options: o}).parts()) }

// parts are those of the measurement, in order.
func (m *measurement) parts() []part {
	if m.History > 0 {
		return []part{{"a host joins", m.join}, {"a history of changes", m.past}}
	}
	begin := []part{{"hosts join", m.join}, {"the controller starts", m.starts}, {"all agents connect", m.connect}}
	if m.Locations > 0 {
		return []part{{"hosts join", m.joinRacks}, {locationChange, m.locate}}
	}
	if m.Migrate {
		return append(begin, part{portsMoved, m.moving})
	}
	if m.Database {
		return append(begin, part{connectStatic, m.static})
	}
	if m.Together {
		return append(begin, part{changeTogether, m.changeTogether})
	}
	if m.Stages {
		return append(begin, part{changeStages, m.changeInStages})
	}
	return append(begin, part{"nothing happens", m.idle}, part{changeVLAN, m.vlan}, part{changeUplinks, m.uplinks},
		part{changeGroup, m.group}, part{"the controller is killed", m.reconnect}, part{connectStatic, m.static},
		part{connectEphemeral, m.ephemeral})
}

func (m *measurement) run(ctx context.Context) (err error) {
	if m.process, err = newProcess(m.Controller); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.process.close()) }()
	if m.History > 0 {
		m.process.args = []string{"--history-changes", strconv.Itoa(m.History)}
	}
	m.crowd = newCrowd(m.hosts, m.Ports)
	defer m.crowd.end()
	for _, part := range m.parts() {
		m.step(part.what)
		if err := part.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", part.what, err)
		}
	}
	return nil
}

// join begins a cluster and lets all hosts join.
func (m *measurement) join(ctx context.Context) error {
	if _, err := m.process.start(ctx, 0); err != nil {
		return err
	}
	m.def = definition{vlan: 100, spare: true}
	if err := m.apply(ctx, 0); err != nil {
		return err
	}
	before, err := m.process.working()
	if err != nil {
		return err
	}
	began := time.Now()
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(joiners)
	for _, h := range m.crowd.hosts {
		g.Go(func() error { return h.join(gctx, m.process) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	m.joining.seconds = append(m.joining.seconds, time.Since(began).Seconds())
	return m.account(&m.joining, before)
}

// begin is the work so far, before something is measured. The garbage of simulated hosts is collected then, and not in
// the middle of a change: they have one collector for all of them, which stops thousands of hosts at once.
func (m *measurement) begin() (work, error) {
	runtime.GC()
	return m.process.working()
}

// apply makes the definition that of the measurement. With a time to wait, it returns when all hosts have it.
func (m *measurement) apply(ctx context.Context, wait time.Duration) error {
	out, err := m.process.Define(ctx, api.Define{File: "fleet.yaml", Content: m.def.text(), Wait: wait})
	if err != nil {
		return err
	}
	m.revision = out.Revision
	if wait > 0 && len(out.Waiting) > 0 { // they lost their connections for a moment, as they do on a busy machine
		_, err = m.crowd.await(ctx, m.process, m.revision, time.Now())
	}
	return err
}

// account adds what was used to a series.
func (m *measurement) account(s *series, before work) error {
	after, err := m.process.working()
	if err != nil {
		return err
	}
	used := after.since(before)
	s.controller = append(s.controller, used.controller/float64(m.hosts))
	s.agents = append(s.agents, used.agents/float64(m.hosts))
	return nil
}

// starts starts the controller again and again, with the state of all hosts.
func (m *measurement) starts(ctx context.Context) error {
	for range min(m.Rounds, mostRestarts) {
		if err := m.process.kill(syscall.SIGKILL); err != nil {
			return err
		}
		took, err := m.process.start(ctx, m.revision)
		if err != nil {
			return err
		}
		m.starting.seconds = append(m.starting.seconds, took.Seconds())
		if err := m.account(&m.starting, work{}); err != nil {
			return err
		}
		m.starting.agents = nil // none runs
	}
	return nil
}

// connect starts all agents at once.
func (m *measurement) connect(ctx context.Context) error {
	before, err := m.begin()
	if err != nil {
		return err
	}
	made := m.crowd.connections()
	began := time.Now()
	m.crowd.run(ctx)
	took, err := m.crowd.await(ctx, m.process, m.revision, began)
	if err != nil {
		return err
	}
	m.connecting.connections += m.crowd.connections() - made
	m.connecting.seconds = append(m.connecting.seconds, took.Seconds())
	m.connecting.hosts = m.crowd.delays(began)
	if err := m.account(&m.connecting, before); err != nil {
		return err
	}
	return m.check()
}

// idle measures a cluster in which nothing happens.
func (m *measurement) idle(ctx context.Context) error {
	if m.Idle == 0 {
		return nil
	}
	before, err := m.process.working()
	if err != nil {
		return err
	}
	began := time.Now()
	select {
	case <-time.After(m.Idle):
	case <-ctx.Done():
		return ctx.Err()
	}
	after, err := m.process.working()
	if err != nil {
		return err
	}
	used, passed := after.since(before), time.Since(began).Seconds()
	m.idleShare = &work{100 * used.controller / passed, 100 * used.agents / passed}
	return nil
}

func (m *measurement) vlan(ctx context.Context) error {
	return m.change(ctx, &m.vlans, func(d *definition) { d.vlan++ }, nil)
}

func (m *measurement) uplinks(ctx context.Context) error {
	return m.change(ctx, &m.policies, func(d *definition) { d.swap = !d.swap }, nil)
}

func (m *measurement) group(ctx context.Context) error {
	return m.change(ctx, &m.removals, func(d *definition) { d.spare = false }, func(d *definition) { d.spare = true })
}

// change makes a change again and again, and measures how long the hosts take; undo, if not nil, is not measured.
func (m *measurement) change(ctx context.Context, s *series, do, undo func(*definition)) error {
	for range m.Rounds {
		before, err := m.begin()
		if err != nil {
			return err
		}
		do(&m.def)
		began := time.Now()
		if err := m.apply(ctx, patience); err != nil {
			return err
		}
		s.seconds = append(s.seconds, time.Since(began).Seconds())
		s.hosts = append(s.hosts, m.crowd.delays(began)...)
		if err := m.account(s, before); err != nil {
			return err
		}
		if err := m.check(); err != nil {
			return err
		}
		if undo == nil {
			continue
		}
		undo(&m.def)
		if err := m.apply(ctx, patience); err != nil {
			return err
		}
	}
	return m.weigh()
}

// weigh reads how much memory the controller has, and how much it had at most.
func (m *measurement) weigh() error {
	now, most, err := m.process.memory()
	m.memory, m.mostMemory = now, max(m.mostMemory, most)
	return err
}

// reconnect kills the controller and starts it again; the definition changes before the agents are back.
func (m *measurement) reconnect(ctx context.Context) error {
	for range min(m.Rounds, mostRestarts) {
		runtime.GC()
		if err := m.process.kill(syscall.SIGKILL); err != nil {
			return err
		}
		before, err := m.process.ownWork()
		if err != nil {
			return err
		}
		made := m.crowd.connections()
		if _, err := m.process.start(ctx, m.revision); err != nil {
			return err
		}
		began := time.Now()
		m.def.vlan++
		if err := m.apply(ctx, 0); err != nil {
			return err
		}
		took, err := m.crowd.await(ctx, m.process, m.revision, began)
		if err != nil {
			return err
		}
		m.reconnecting.seconds = append(m.reconnecting.seconds, took.Seconds())
		m.reconnecting.hosts = append(m.reconnecting.hosts, m.crowd.delays(began)...)
		if err := m.account(&m.reconnecting, before); err != nil {
			return err
		}
		if err := m.allUp(ctx); err != nil {
			return err
		}
		if err := m.check(); err != nil {
			return err
		}
		m.reconnecting.connections += m.crowd.connections() - made
	}
	_, most, err := m.process.memory()
	m.mostMemory = max(m.mostMemory, most)
	return err
}

// allUp waits until all hosts have the newest version, and the controller has all their ports.
func (m *measurement) allUp(ctx context.Context) error {
	ports := map[string]int{}
	for _, h := range m.crowd.hosts {
		ports[h.name()] = h.count()
	}
	for began := time.Now(); ; time.Sleep(20 * poll) {
		list, err := m.process.Hosts(ctx)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(list.Hosts, func(h api.FleetHost) bool {
			return h.State != api.HostUp || h.Ports != ports[h.Name]
		})
		if i < 0 && len(list.Hosts) == m.hosts {
			return nil
		}
		if time.Since(began) > patience {
			return fmt.Errorf("the controller has %d hosts, one of them %+v", len(list.Hosts), list.Hosts[max(i, 0)])
		}
	}
}
