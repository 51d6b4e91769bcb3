package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"go.yaml.in/yaml/v4"

	"heddle/internal/api"
	"heddle/internal/lab/scenario"
	"heddle/internal/spec"
)

const (
	// controllerProgram is the name of the controllers' program.
	controllerProgram = "heddle-controller"
	// agentsPort is the port on which controllers of a lab serve agents.
	agentsPort = "7411"
	// tokenLasts is how long a host's token can be used; the lab uses it at once.
	tokenLasts = 10 * time.Minute
)

// Controller is the socket of the first controller of the lab, and ok whether the lab has one.
func (r *Record) Controller() (socket string, ok bool) {
	for _, n := range r.Nodes {
		if n.Kind == NodeController {
			return r.controllerSocket(n.Name), true
		}
	}
	return "", false
}

func (r *Record) controllerDir(node string) string { return filepath.Join(r.Dir, "controller", node) }
func (r *Record) controllerSocket(node string) string {
	return filepath.Join(r.controllerDir(node), "api.sock")
}

// findController finds the controllers' program: beside the heddle program, or where programs are.
func findController(heddle string) (string, error) {
	beside := filepath.Join(filepath.Dir(heddle), controllerProgram)
	if _, err := os.Stat(beside); err == nil {
		return beside, nil
	}
	found, err := exec.LookPath(controllerProgram)
	if err != nil {
		return "", fmt.Errorf("this lab has controllers, and there is no program %s beside %s or in the path; install "+
			"the package %s, or build both with: make build", controllerProgram, heddle, controllerProgram)
	}
	return found, nil
}

// startControllers starts the controllers and gives them the definition.
func (l *Lab) startControllers(ctx context.Context) error {
	program, err := findController(l.opts.Program)
	if err != nil {
		return err
	}
	for i := range l.Scenario.Controllers {
		k := &l.Scenario.Controllers[i]
		if err := l.startController(ctx, program, k); err != nil {
			return err
		}
		if i == 0 {
			continue
		}
		if err := l.joinController(ctx, k); err != nil {
			return fmt.Errorf("controller %s: %w", k.Name, err)
		}
	}
	return l.define(ctx)
}

// joinController makes a controller part of the cluster of the first one, and waits until it has a vote.
func (l *Lab) joinController(ctx context.Context, k *scenario.Controller) error {
	first := &l.Scenario.Controllers[0]
	cluster := api.NewFleet(l.controllerSocket(first.Name))
	token, err := cluster.ControllerToken(ctx, api.ControllerTerms{Lasts: tokenLasts})
	if err != nil {
		return err
	}
	its := api.NewFleet(l.controllerSocket(k.Name))
	q := api.JoinCluster{Controller: advertise(first), Token: token.Token, Name: k.Name}
	if _, err := its.JoinCluster(ctx, q); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	return l.await(ctx, k.Name, func(ctx context.Context, name string) error {
		// It starts anew as part of the cluster, and answers as such then.
		all, err := its.Controllers(ctx)
		if err != nil {
			return err
		}
		for _, c := range all.Controllers {
			if c.Name == name && len(all.Controllers) > 1 && (c.Role == "voter" || c.Role == "leader") {
				return nil
			}
		}
		return errors.New("it has no vote in the cluster yet")
	})
}

func (l *Lab) startController(ctx context.Context, program string, k *scenario.Controller) error {
	socket := l.controllerSocket(k.Name)
	p, err := l.start(l.ns[k.Name], filepath.Join(l.Dir, "log", k.Name+".log"), 0, program,
		"--data-dir", filepath.Join(l.controllerDir(k.Name), "data"), "--listen", ":"+agentsPort,
		"--advertise", advertise(k), "--socket", socket, "--name", k.Name)
	if err != nil {
		return err
	}
	l.processes[k.Name] = p
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	return l.await(ctx, k.Name, func(ctx context.Context, _ string) error {
		_, err := api.NewFleet(socket).Hosts(ctx)
		return err
	})
}

// advertise is where agents find a controller.
func advertise(k *scenario.Controller) string {
	return net.JoinHostPort(k.Addresses[0].Addr().String(), agentsPort)
}

// define gives the controllers the scenario's definition, and writes it where people find it.
func (l *Lab) define(ctx context.Context) error {
	text, err := yaml.Marshal(l.Scenario.Definition)
	if err != nil {
		return fmt.Errorf("write the definition: %w", err)
	}
	file := filepath.Join(l.Dir, "config", "definition.yaml")
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return err
	}
	socket, _ := l.Controller()
	_, err = api.NewFleet(socket).Define(ctx, api.Define{File: file, Content: string(text)})
	return err
}

// joinHosts makes hosts members of the cluster, and connects the VMs that are in port groups of its definition.
func (l *Lab) joinHosts(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	socket, _ := l.Controller()
	for i := range l.Scenario.Hosts {
		h := &l.Scenario.Hosts[i]
		if !l.Scenario.Joins(h) {
			continue
		}
		if err := l.join(ctx, api.NewFleet(socket), h); err != nil {
			return fmt.Errorf("host %s: %w", h.Name, err)
		}
	}
	for i := range l.Scenario.VMs {
		v := &l.Scenario.VMs[i]
		if !v.OfController() {
			continue
		}
		_, err := l.Agent(v.Host).Connect(ctx, api.Connect{Port: spec.Port{Name: v.Port, Switch: v.Switch,
			PortGroup: v.PortGroup, Device: v.Device, MAC: v.MAC.String()}})
		if err != nil {
			return fmt.Errorf("VM %s: %w", v.Name, err)
		}
	}
	return nil
}

// join makes one host a member, and waits until it has its switches active.
func (l *Lab) join(ctx context.Context, f *api.Fleet, h *scenario.Host) error {
	// A host that is not ready to forward has no way to the controllers yet.
	if err := l.await(ctx, h.Name, l.agentReady); err != nil {
		return err
	}
	token, err := f.JoinToken(ctx, api.JoinTerms{Labels: h.Labels, Lasts: tokenLasts})
	if err != nil {
		return err
	}
	q := api.Join{Controller: advertise(&l.Scenario.Controllers[0]), Token: token.Token, Name: h.Name}
	if _, err := l.Agent(h.Name).Join(ctx, q); err != nil {
		return err
	}
	return l.await(ctx, h.Name, func(ctx context.Context, name string) error {
		all, err := f.Hosts(ctx)
		if err != nil {
			return err
		}
		for _, known := range all.Hosts {
			if known.Name == name && (known.State == api.HostUp || known.State == api.HostWarning) {
				return nil
			}
		}
		return errors.New("it does not have the definition active yet")
	})
}
