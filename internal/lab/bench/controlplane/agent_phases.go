package controlplane

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"heddle/internal/api"
	"heddle/internal/lab/cputime"
	"heddle/internal/lab/report"
)

// What a real agent does while its memory is measured.
const (
	portsConnect   = "ports connect, one after the other"
	allPorts       = "teaming of the whole switch, all ports"
	controllerBack = "the controller is killed and comes back"
	agentBack      = "the agent is killed and comes back"
	nothingHappens = "nothing happens"
)

// agentBudget is how much an agent may have in memory at any time, in bytes; it is held for budgetPorts.
const (
	agentBudget = 45e6
	budgetPorts = 1000
)

// phase is what was measured of the agent while it did something.
type phase struct {
	what             string
	seconds          float64
	looks, ownLooks  []float64 // bytes: all that is resident, and what is shared with no file
	most, cpu, share float64   // bytes, seconds, percent of a core
}

// measure watches the agent while do runs, and for so long afterwards.
func (r *agentRun) measure(ctx context.Context, what string, after time.Duration,
	do func(context.Context) error) error {
	pid := r.agent.Process.Pid
	if err := forgetMost(pid); err != nil {
		return err
	}
	began := time.Now()
	before, err := cputime.Process(pid)
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- do(ctx) }()
	p, until := phase{what: what}, (<-chan time.Time)(nil)
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for over := false; !over; {
		select {
		case <-tick.C:
			m, errLook := memoryOf(pid)
			if errLook != nil {
				return errLook
			}
			p.looks, p.ownLooks = append(p.looks, m.now), append(p.ownLooks, m.own)
		case err := <-done:
			if err != nil {
				return err
			}
			until = time.After(after)
		case <-until:
			over = true
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	m, err := memoryOf(pid)
	if err != nil {
		return err
	}
	used, err := cputime.Process(pid)
	if err != nil {
		return err
	}
	p.seconds, p.most, p.cpu = time.Since(began).Seconds(), m.most, (used - before).Seconds()
	p.share = 100 * p.cpu / p.seconds
	r.phases = append(r.phases, p)
	return nil
}

func (r *agentRun) connect(ctx context.Context) error {
	err := r.measure(ctx, portsConnect, r.Calm, func(ctx context.Context) error {
		for i := range r.Ports {
			ctx, cancel := context.WithTimeout(ctx, agentPatience)
			_, err := r.client.Connect(ctx, r.port(i))
			cancel()
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return r.await(ctx, "has told the controller of its ports", r.inForce)
}

// changeAll changes something that each port has.
func (r *agentRun) changeAll(ctx context.Context) error {
	return r.measure(ctx, allPorts, r.Calm, func(ctx context.Context) error {
		for range r.Rounds {
			r.def.swap = !r.def.swap
			out, err := r.process.Define(ctx, api.Define{File: "fleet.yaml", Content: r.def.text(), Wait: patience})
			if err != nil {
				return err
			}
			if len(out.Waiting) > 0 {
				return fmt.Errorf("the host does not have the change after %s", patience)
			}
		}
		return nil
	})
}

// reconnect kills the controller and changes the definition before the agent is back.
func (r *agentRun) reconnect(ctx context.Context) error {
	return r.measure(ctx, controllerBack, r.Calm, func(ctx context.Context) error {
		for range min(r.Rounds, mostRestarts) {
			if err := r.process.kill(syscall.SIGKILL); err != nil {
				return err
			}
			if _, err := r.process.start(ctx, 0); err != nil {
				return err
			}
			r.def.vlan++
			_, err := r.process.Define(ctx, api.Define{File: "fleet.yaml", Content: r.def.text(), Wait: patience})
			if err != nil {
				return err
			}
			if err := r.await(ctx, "is connected again", r.inForce); err != nil {
				return err
			}
		}
		return nil
	})
}

// restart kills the agent and starts it with all its ports.
func (r *agentRun) restart(ctx context.Context) error {
	if err := r.agent.Process.Kill(); err != nil {
		return err
	}
	<-r.ended
	if err := r.start(ctx); err != nil {
		return err
	}
	m, err := memoryOf(r.agent.Process.Pid) // the most since its start
	if err != nil {
		return err
	}
	err = r.measure(ctx, agentBack, r.Calm, func(ctx context.Context) error {
		return r.await(ctx, "is connected again", r.inForce)
	})
	if err == nil {
		last := &r.phases[len(r.phases)-1]
		last.most = max(last.most, m.most)
	}
	return err
}

func (r *agentRun) rest(ctx context.Context) error {
	return r.measure(ctx, nothingHappens, r.Rest, func(context.Context) error { return nil })
}

func (r *agentRun) report(env report.Environment) *report.Report {
	rep := &report.Report{Name: "bench control-plane --agent", Environment: env}
	for _, p := range r.phases {
		rep.Rows = append(rep.Rows, report.Row{{Name: "ports", Value: r.Ports}, {Name: "work", Value: p.what},
			{Name: "time", Value: p.seconds, Unit: report.Seconds},
			{Name: "most_memory", Title: "most memory", Value: p.most, Unit: report.Bytes},
			{Name: "memory", Value: report.Summarise(p.looks), Unit: report.Bytes},
			{Name: "own_memory", Title: "its own", Value: report.Summarise(p.ownLooks), Unit: report.Bytes},
			{Name: "cpu", Title: "CPU", Value: p.cpu, Unit: report.Seconds},
			{Name: "cpu_share", Title: "of a core", Value: p.share, Unit: report.Percent}})
		if r.Ports == budgetPorts {
			rep.Budgets = append(rep.Budgets, report.Hold("most memory with 1,000 ports: "+p.what, p.most, report.Bytes,
				report.AtMost, agentBudget))
		}
	}
	rep.Notes = []string{fmt.Sprintf("A real agent process below a real controller process, with %d ports on one end "+
		"of a veth pair each; the other ends are in a namespace of their own. Memory is what the kernel says is "+
		"resident (VmRSS), pages of the program's file and others that are shared included; the most is the "+
		"kernel's own mark (VmHWM), set back before each row. \"Its own\" is what is shared with no file (RssAnon). "+
		"Medians are of a look every %s. The definition was changed %d times, and the controller killed %d times. "+
		"Each row but the last has %s without work after it.", r.Ports, lookEvery, r.Rounds,
		min(r.Rounds, mostRestarts), r.Calm)}
	return rep
}
