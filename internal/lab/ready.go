package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.yaml.in/yaml/v4"

	"heddle/internal/api"
	"heddle/internal/lab/scenario"
	"heddle/internal/spec"
)

// readyTime limits how long agents, ports and machines may take to be ready; an emulated machine boots in seconds.
const readyTime = 60 * time.Second

// startAgents starts the agent of every host and of every switch of kind heddle.
func (l *Lab) startAgents(context.Context) error {
	for name, config := range l.configs() {
		file := filepath.Join(l.Dir, "config", name+".yaml")
		if err := writeConfig(file, config); err != nil {
			return err
		}
		p, err := l.start(l.ns[name], filepath.Join(l.Dir, "log", name+".log"), AgentNice, l.opts.Program, "agent",
			"--name", name, "--config", file, "--run-dir", l.AgentRunDir(), "--state-dir",
			filepath.Join(l.Dir, "state"))
		if err != nil {
			return err
		}
		l.processes[name] = p
	}
	return nil
}

// configs returns the configuration of every node with an agent.
func (l *Lab) configs() map[string]*spec.Config {
	all := map[string]*spec.Config{}
	for _, h := range l.Scenario.Hosts {
		all[h.Name] = h.Config
	}
	for _, sw := range l.Scenario.Switches {
		if sw.Kind == scenario.Heddle {
			all[sw.Name] = sw.Config
		}
	}
	return all
}

func writeConfig(file string, c *spec.Config) error {
	data, err := yaml.Marshal(c)
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o644)
}

// AgentRunDir is the run directory that all agents of the lab share; their pins are below it too.
func (r *Record) AgentRunDir() string { return filepath.Join(r.Dir, "run") }

// Agent is the client of a node's agent.
func (r *Record) Agent(node string) *api.Client {
	return api.NewClient(api.SocketPath(r.AgentRunDir(), node))
}

// awaitReady waits until every agent serves, everything connected to a port is up, and every machine has booted.
func (l *Lab) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	for _, n := range l.Nodes {
		if n.Agent {
			if err := l.await(ctx, n.Name, l.agentReady); err != nil {
				return err
			}
		}
	}
	for _, v := range l.Scenario.VMs {
		if v.Kind == scenario.QEMU {
			if err := l.await(ctx, v.Name, l.guestReady); err != nil {
				return err
			}
		}
	}
	return nil
}

// await repeats look until nothing is missing. It is an error if a process ends meanwhile.
func (l *Lab) await(ctx context.Context, node string, look func(context.Context, string) (missing error)) error {
	for {
		missing := look(ctx, node)
		if missing == nil {
			return nil
		}
		if p := l.processes[node]; p != nil && p.hasEnded() {
			return fmt.Errorf("%s: %w", node, p.ended())
		}
		if !pause(ctx) {
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return fmt.Errorf("%s is not ready after %v: %w", node, readyTime, missing)
			}
			return ctx.Err()
		}
	}
}

// agentReady returns what is still missing on a host.
func (l *Lab) agentReady(ctx context.Context, host string) error {
	state, err := l.Agent(host).State(ctx)
	if err != nil {
		return err
	}
	for _, u := range state.Uplinks {
		if u.State != api.Up && u.State != api.Blocked && u.State != api.Drained {
			return fmt.Errorf("uplink %s is %s: %s", u.Name, u.State, u.Reason)
		}
	}
	if n := state.Agent.Announcing; n > 0 { // announcements would be in the counts of the next measurement
		return fmt.Errorf("the agent has still to announce its ports: %d frames", n)
	}
	expected := l.connected(host)
	for _, p := range state.Ports {
		owner, ok := expected[p.Name]
		switch {
		case !ok && p.Role != spec.Host:
		case p.State != api.Up && p.State != api.Blocked:
			return fmt.Errorf("port %s is %s: %s", p.Name, p.State, p.Reason)
		case owner == nestedHost && p.Promiscuous == "no":
			return fmt.Errorf("the nested host on port %s has not asked for frames of others yet", p.Name)
		}
	}
	return nil
}

// owner is what is connected to a port.
type owner uint8

const (
	guest owner = iota
	nestedHost
)

// connected lists the ports of a node to which the lab connects something.
func (l *Lab) connected(host string) map[string]owner {
	ports := map[string]owner{}
	for _, h := range l.Scenario.Hosts {
		for _, n := range h.NICs {
			if n.Host == host {
				ports[n.Port] = nestedHost
			}
		}
	}
	for _, v := range l.Scenario.VMs {
		if v.Host == host {
			ports[v.Port] = guest
		}
	}
	for _, r := range l.Scenario.Routers {
		for _, f := range r.Interfaces {
			if f.Host == host {
				ports[f.Port] = guest
			}
		}
	}
	if sw := l.Scenario.Switch(host); sw != nil {
		for _, k := range l.Scenario.Links {
			for _, e := range []scenario.End{k.A, k.B} {
				if p := scenario.PortWithDevice(sw.Config, e.Device); e.Node == host && p != nil {
					ports[p.Name] = guest
				}
			}
		}
	}
	return ports
}
