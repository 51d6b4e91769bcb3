package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/agent/cluster"
	"heddle/internal/agent/state"
	"heddle/internal/api"
	"heddle/internal/dataplane"
	"heddle/internal/identity"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/spec"
	"heddle/internal/uplinks"
)

// membership is the host's part in a cluster of controllers. Its lock is held for moments: the conversation runs beside
// the loop, and commands ask how it stands.
type membership struct {
	*shared
	slicing   *slicing
	answers   *answers
	changer   *changer
	dir       string       // the record's
	looking   http.Handler // answers those who look by way of a controller
	statics   *statics
	isolation *isolation
	moving    *moving
	locating  *locating
	probing   *probing // nil for an agent that does not probe

	joining sync.Mutex // held by the command that joins or leaves
	mu      sync.Mutex
	record  *cluster.Record // nil where the host is in no cluster
	client  *cluster.Client
	stop    context.CancelFunc
	done    chan struct{}
	offered *controllerv1.HostOffers // the newest; nil before the first
	// How the conversation stands.
	connected string
	since     time.Time
	problem   string
}

// open reads the record. A damaged one does not keep the host from going on by what it has.
func (m *membership) open(dir string) {
	record, err := cluster.Load(dir)
	m.dir, m.record, m.since = dir, record, time.Now()
	if err != nil && !errors.Is(err, cluster.ErrNone) {
		m.problem = err.Error()
		m.log.Error("the host's part in a cluster cannot be read: the host goes on by what it has", "err", err)
	}
}

// begin begins the conversation, if the host is in a cluster.
func (m *membership) begin() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.record == nil || m.client != nil {
		return
	}
	begun, err := m.record.Begin(time.Now())
	if err != nil { // the host goes on: controllers can't tell what an earlier start of the agent has asked for late
		m.log.Warn("this start of the agent has no number", "err", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	client := cluster.New(cluster.Options{Host: member{m}, Together: member{m}, Membership: m.record,
		Log: m.log, Version: m.version, Begun: begun,
		Connected: m.now, Calls: m.looking, Ports: m.statics, Moves: m.moving, Segments: m.segments(),
		Probes: m.probes(), Kept: m.kept})
	done := make(chan struct{})
	m.client, m.stop, m.done = client, stop, done
	client.Probes = m.probes()
	if m.offered != nil {
		client.Offer(m.offered)
	}
	go func() {
		defer close(done)
		client.Run(ctx)
	}()
}

// segments is the host's part in overlay segments; nil for an agent that has none.
func (m *membership) segments() cluster.Segments {
	if m.locating == nil || m.locating.keeper == nil {
		return nil
	}
	return m.locating.keeper
}

// probes is the host's part in the probes between hosts; nil for an agent that has none.
func (m *membership) probes() cluster.Probes {
	if m.probing == nil {
		return nil
	}
	return m.probing
}

// who is this host in its cluster.
func (m *membership) who() (id, name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.record == nil {
		return "", ""
	}
	return m.record.Host(), m.record.Name()
}

// self is the host's id in its cluster; "" while it is in none.
func (m *membership) self() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.record == nil {
		return ""
	}
	return m.record.Host()
}

// end ends the conversation and waits for that.
func (m *membership) end() {
	m.mu.Lock()
	stop, done := m.stop, m.done
	m.client, m.stop = nil, nil
	m.mu.Unlock()
	if stop != nil {
		stop()
		<-done
	}
}

// reach asks some controller for a sign of life.
func (m *membership) reach(ctx context.Context) error {
	m.mu.Lock()
	client := m.client
	m.mu.Unlock()
	if client == nil {
		return errors.New("this host is in no cluster")
	}
	return client.Reach(ctx)
}

// anew begins the conversation anew, beside the loop: the controllers are told then what the host has.
func (m *membership) anew() {
	go func() {
		m.joining.Lock()
		defer m.joining.Unlock()
		select {
		case <-m.stopped:
		default:
			m.end()
			m.begin()
		}
	}()
}

// now takes in how the conversation stands.
func (m *membership) now(controller string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if controller != m.connected || m.problem == "" && err != nil {
		m.since = time.Now()
	}
	m.connected, m.problem = controller, ""
	if err != nil {
		m.problem = err.Error()
	}
}

// Settled is called in the loop after each reconcile: what the host has may be another.
func (m *membership) Settled(uplinks.InForce) {
	m.statics.settleKept()
	m.reports()
}

// reports has the controllers told what the host has, where it is another.
func (m *membership) reports() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.client == nil {
		return
	}
	m.client.Changed()
	if m.statics.appeared() {
		m.client.Settle()
	}
	if m.slicing.worthAnother() {
		m.anew() // so that the controllers send it again
	}
	if id, problems, changed := m.slicing.preparedAnew(); changed {
		m.client.Prepared(id, problems)
	}
}

// offer has the controllers told which moves this host takes over.
func (m *membership) offer(all *controllerv1.HostOffers) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.offered = all; m.client != nil {
		m.client.Offer(all)
	}
}

// between is who this host is to other hosts of its cluster.
func (m *membership) between() (*identity.Between, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.record == nil {
		return nil, errors.New("this host is in no cluster")
	}
	return m.record.Between(), nil
}

// local is the address from which this host talks to its controller; none before it did.
func (m *membership) local() []netip.Addr {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.client != nil {
		if at, ok := m.client.Local(); ok {
			return []netip.Addr{at}
		}
	}
	return nil
}

// settle has the ports claimed that are connected and not bound.
func (m *membership) settle() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.client != nil {
		m.client.Settle()
	}
}

// claim asks a controller for a static port.
func (m *membership) claim(ctx context.Context, q *controllerv1.PortClaim) (*controllerv1.PortAnswer, error) {
	m.mu.Lock()
	client := m.client
	m.mu.Unlock()
	if client == nil {
		return nil, cluster.ErrNoController
	}
	return client.Claim(ctx, q)
}

// describe asks a controller what a port has where its guest runs.
func (m *membership) describe(ctx context.Context, q *controllerv1.DescribeArrivalRequest) (
	*controllerv1.DescribeArrivalResponse, error) {
	m.mu.Lock()
	client := m.client
	m.mu.Unlock()
	if client == nil {
		return nil, cluster.ErrNoController
	}
	return client.Describe(ctx, q)
}

// ended has the controller told that the connecting of an adapter has ended.
func (m *membership) ended(vm, adapter string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.client != nil {
		m.client.Ended(vm, adapter)
	}
}

// Close ends the conversation.
func (m *membership) Close() error {
	m.end()
	return nil
}

// Membership is the host's part in a cluster.
func (m *membership) Membership(ctx context.Context) (*api.Membership, error) {
	out := &api.Membership{Controllers: []string{}, Switches: []string{}, HostPorts: []api.DefinedHostPort{}}
	m.mu.Lock()
	out.Error = m.problem
	if r := m.record; r != nil {
		*out = api.Membership{Member: true, Cluster: r.Cluster(), Host: r.Host(), Name: r.Name(),
			Controllers: r.Controllers(), Connected: m.connected, Since: m.since, Error: m.problem,
			Expires:  r.Expires(),
			Switches: []string{}, HostPorts: []api.DefinedHostPort{}}
	}
	m.mu.Unlock()
	return out, m.do(ctx, func() error {
		if s := m.state.Slice; s != nil {
			out.Revision, out.Epoch = s.Revision, s.Epoch
		}
		if cfg := m.slicing.ports.slice; cfg != nil {
			for _, sw := range cfg.Switches {
				out.Switches = append(out.Switches, sw.Name)
			}
			for _, p := range cfg.Ports {
				out.HostPorts = append(out.HostPorts, api.DefinedHostPort{Name: p.Name, Switch: p.Switch,
					PortGroup: p.PortGroup, Addresses: p.Addresses})
			}
		}
		out.Kept = keeper{m.slicing.ports}.keepsBeside()
		return nil
	})
}

// NetworkHealth is what the host knows of the physical network.
func (m *membership) NetworkHealth(context.Context) (*api.HostHealth, error) {
	if m.probing == nil {
		return &api.HostHealth{Alone: true, Findings: []api.NetworkFinding{}}, nil
	}
	return m.probing.health(), nil
}

// Join makes the host part of a cluster.
func (m *membership) Join(ctx context.Context, q api.Join) (*api.Membership, error) {
	m.joining.Lock()
	defer m.joining.Unlock()
	m.mu.Lock()
	is, connected := m.record, m.connected
	m.mu.Unlock()
	switch {
	case is != nil && (connected != "" || q.Name != "" && q.Name != is.Name()):
		return nil, api.NewError(api.Invalid, fmt.Sprintf("this host is %s of cluster %s: leave that first (heddle "+
			"host leave)", is.Name(), is.Cluster()))
	case is != nil:
		return m.repair(ctx, is, q.Controller)
	case q.Token == "":
		return nil, api.NewError(api.Invalid, "this host is in no cluster: a token is needed (heddle host token at a "+
			"controller)")
	}
	if q.Name == "" {
		name, err := os.Hostname()
		if err != nil {
			return nil, err
		}
		q.Name = name
	}
	record, err := cluster.Join(ctx, m.dir, cluster.Request{Controller: q.Controller, Token: q.Token, Name: q.Name,
		Replace: q.Replace})
	if err != nil {
		return nil, api.NewError(api.Invalid, err.Error())
	}
	m.mu.Lock()
	m.record, m.problem = record, ""
	m.mu.Unlock()
	m.log.Info("joined a cluster", "cluster", record.Cluster(), "as", record.Name())
	m.begin()
	return m.Membership(ctx)
}

// repair has the host of a cluster, which has lost its controllers, look for them at another address. It is who it was,
// by the certificate that it has: no token is used up.
func (m *membership) repair(ctx context.Context, is *cluster.Record, controller string) (*api.Membership, error) {
	if err := is.Repair(ctx, controller); err != nil {
		return nil, api.NewError(api.Invalid, fmt.Sprintf("this host is %s of cluster %s already, and finds none of "+
			"its controllers at %s: %v. To join another cluster, leave that first (heddle host leave)", is.Name(),
			is.Cluster(), controller, err))
	}
	m.log.Info("the controllers are looked for at another address", "controller", controller)
	m.end()
	m.begin()
	return m.Membership(ctx)
}

// HandOver hands the switches that the host's own file has too over to the controllers. The conversation begins anew
// then, by which the controllers hear of it.
func (m *membership) HandOver(ctx context.Context, q api.HandOver) (*api.Applied, error) {
	m.joining.Lock()
	defer m.joining.Unlock()
	out, err := m.slicing.HandOver(ctx, q)
	if err == nil && !q.DryRun {
		m.end()
		m.begin()
	}
	return out, err
}

// Leave makes what the controllers declared the host's own configuration, and returns how it was.
func (m *membership) Leave(ctx context.Context) (*api.Membership, error) {
	m.joining.Lock()
	defer m.joining.Unlock()
	was, err := m.Membership(ctx)
	if err != nil {
		return nil, err
	}
	if !was.Member {
		return nil, api.NewError(api.Invalid, "this host is in no cluster")
	}
	m.end()
	if err := m.slicing.own(ctx, was.Cluster); err != nil {
		m.begin()
		return nil, err
	}
	m.mu.Lock()
	record := m.record
	m.record, m.connected, m.problem = nil, "", ""
	m.mu.Unlock()
	if m.locating.keeper != nil {
		if err := m.locating.keeper.Forget(); err != nil {
			m.log.Error("what was known of overlay segments cannot be removed", "err", err)
		}
	}
	if m.probing != nil {
		m.probing.fabric.Left()
	}
	m.log.Info("left the cluster; what it declared here is the host's own configuration", "cluster", was.Cluster)
	return was, record.Forget()
}

// member is the agent in its conversation with a controller.
type member struct{ *membership }

// Given is the version of the definition that is active.
func (m member) Given(ctx context.Context) (*state.Slice, error) { return m.slicing.given(ctx) }

// Take activates another version.
func (m member) Take(ctx context.Context, next *state.Slice) ([]string, error) {
	return m.slicing.Take(ctx, next)
}

// Prepare makes another version ready.
func (m member) Prepare(ctx context.Context, id string, next *state.Slice) ([]string, error) {
	return m.slicing.Prepare(ctx, id, next)
}

// Clock is CLOCK_MONOTONIC.
func (m member) Clock() (int64, error) { return dataplane.Monotonic() }

// ActiveAt is when the kernel began to forward by the version that was activated last.
func (m member) ActiveAt(ctx context.Context) (at int64, err error) {
	err = m.do(ctx, func() error { at = m.slicing.effect.flip.After; return nil })
	return at, err
}

// kept are warnings about what the host keeps beside the controllers' definition.
func (m *membership) kept(ctx context.Context) (lines []string, err error) {
	err = m.do(ctx, func() error { lines = keeper{m.slicing.ports}.keptWarnings(); return nil })
	return lines, err
}

// Report is what the host has of distributed switches of its cluster.
func (m member) Report(ctx context.Context) (*controllerv1.HostReport, error) {
	out := &controllerv1.HostReport{}
	return out, m.do(ctx, func() error {
		if r := m.state.Reverted; r != nil {
			out.Reverted = &controllerv1.RevertedSlice{Why: r.Why, Times: r.Times,
				Version: &controllerv1.SliceVersion{Epoch: r.Epoch, Revision: r.Revision, Hash: r.Hash}}
		}
		cfg := m.slicing.ports.slice
		if cfg == nil {
			return nil
		}
		given := map[string]bool{}
		for _, sw := range cfg.Switches {
			given[sw.Name] = true
		}
		for _, p := range m.answers.view().Ports {
			if given[p.Switch] {
				port := m.reported(p)
				if p.Role == spec.Host {
					port.Role = string(p.Role)
				}
				out.Ports = append(out.Ports, port)
			}
		}
		out.Switches = m.isolation.hostSwitches(given)
		out.Warnings = slices.Concat(spec.MissingDevices(cfg, m.lookup), texts(m.slicing.ports.misfits),
			m.slicing.ports.lacks, keeper{m.slicing.ports}.keptWarnings(), m.slicing.ports.unused)
		return nil
	})
}

// reported is a port as controllers are told of it.
func (m member) reported(p api.Port) *controllerv1.HostPort {
	out := &controllerv1.HostPort{Switch: p.Switch, Name: p.Name, PortGroup: p.PortGroup, State: string(p.State),
		Mac: p.MAC, Device: p.Device, Vm: p.VM, Adapter: p.Adapter, Port: p.PortID, Conflict: p.Conflict,
		Waits: p.Wait != nil, Absent: p.ReasonCode == problem.NoDevice || p.ReasonCode == problem.DeviceMissing,
		Kept: keeper{m.slicing.ports}.isKept(p.Switch, p.PortGroup)}
	if n := m.state.NICOf(p.Name); n != nil && p.Conflict != "" {
		out.Rival, out.Rivals = n.Rival != "", n.Rivals
	}
	if n := m.state.NICOf(p.Name); n != nil {
		out.Generation = m.moving.generationOf(n)
	}
	if w := m.state.WaitOf(plan.PortID{Switch: p.Switch, Name: p.Name}); w != nil {
		out.Waits, out.Arrived = !w.Awake, w.Awake && !w.Left
	}
	return out
}
