package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	"heddle/internal/host/interrupt"
	"heddle/internal/lab"
	"heddle/internal/lab/experiment"
	"heddle/internal/lab/scenario"
	"heddle/internal/spec/known"
)

// Up builds the lab of a built-in scenario, of a row of an experiment written EXPERIMENT/ROW, or of a file, and leaves
// it running.
func Up(ctx context.Context, what string, o lab.Options) (*lab.Record, error) {
	s, err := findScenario(ctx, what)
	if err != nil {
		return nil, asFault(err)
	}
	if err := needRoot("build a lab"); err != nil {
		return nil, err
	}
	l, err := toTheEnd(ctx, func(ctx context.Context) (*lab.Lab, error) { return lab.Build(ctx, s, o) })
	if err != nil {
		return nil, err
	}
	return l.Record, nil
}

// findScenario takes a built-in scenario, a row of an experiment written EXPERIMENT/ROW, or a file.
func findScenario(ctx context.Context, arg string) (*scenario.Scenario, error) {
	if name, row, ok := strings.Cut(arg, "/"); ok && slices.Contains(experiment.Names(), name) {
		e, err := experiment.Find(name)
		if err != nil {
			return nil, err
		}
		r := e.Row(row)
		if r == nil {
			return nil, errors.New(known.Names{What: "row", Owner: "experiment " + name, All: RowNames(name)}.Missing(
				row))
		}
		return r.Scenario, nil
	}
	if !strings.ContainsAny(arg, "./") {
		return experiment.Scenario(arg)
	}
	return interrupt.Do(ctx, func() (*scenario.Scenario, error) { return scenario.Load(arg) })
}

// Down removes a lab, also one that was left half-built.
func Down(ctx context.Context, runDir, name string) error {
	return lab.Down(ctx, runDir, name)
}

// List is the labs that are up, and what can be built and run.
type List struct {
	Labs        []*lab.Record `json:"labs"`
	Scenarios   []Entry       `json:"scenarios"`
	Experiments []Entry       `json:"experiments"`
}

// Labs lists them.
func Labs(runDir string) (*List, error) {
	labs, err := lab.List(runDir)
	if err != nil {
		return nil, err
	}
	l := &List{Labs: append([]*lab.Record{}, labs...)}
	for _, name := range experiment.ScenarioNames() {
		s, err := experiment.Scenario(name)
		if err != nil {
			return nil, err
		}
		l.Scenarios = append(l.Scenarios, Entry{name, s.Title})
	}
	l.Experiments, err = Experiments()
	return l, err
}

// Exec is a command to run in a node of a lab.
type Exec struct {
	RunDir, Lab, Node string
	Command           []string
	Stdin             io.Reader
	Stdout, Stderr    io.Writer
}

// Run runs the command in the node's namespace and returns its exit status. Unlike "ip netns exec" it does not change
// the mounts, so that objects pinned by agents stay visible.
func (e Exec) Run(ctx context.Context) (status int, err error) {
	ns, err := lab.Namespace(e.RunDir, e.Lab, e.Node)
	if err != nil {
		return 0, err
	}
	if err := needRoot("enter a lab"); err != nil {
		return 0, err
	}
	c := exec.CommandContext(ctx, e.Command[0], e.Command[1:]...)
	if err := e.inNode(c); err != nil {
		return 0, err
	}
	c.Stdin, c.Stdout, c.Stderr = e.Stdin, e.Stdout, e.Stderr
	if err := ns.Start(c); err != nil {
		return 0, fmt.Errorf("start %s: %w", e.Command[0], err)
	}
	if c.Wait() != nil {
		return max(1, c.ProcessState.ExitCode()), nil
	}
	return 0, nil
}

// inNode sets the command's environment so that it finds its node's agent, and this program as heddle.
func (e Exec) inNode(c *exec.Cmd) error {
	r, err := lab.Find(e.RunDir, e.Lab)
	if err != nil {
		return err
	}
	if e.Command[0] == "heddle" {
		if c.Path, err = os.Executable(); err != nil {
			return fmt.Errorf("find this program: %w", err)
		}
		c.Err = nil // ignore an error of the search in the path
	}
	for _, n := range r.Nodes {
		if n.Name != e.Node {
			continue
		}
		// With a controller in the environment, commands would ask all hosts; on a host they ask its agent.
		if socket, ok := r.Controller(); n.Agent {
			c.Env = append(os.Environ(), "HEDDLE_RUN_DIR="+r.AgentRunDir(), "HEDDLE_AGENT="+n.Name)
		} else if ok {
			c.Env = append(os.Environ(), "HEDDLE_CONTROLLER="+socket)
		}
	}
	return nil
}

// KeepAdapter carries the frames of one VM's adapter with queues, described in JSON, until ctx ends.
func KeepAdapter(ctx context.Context, description string) error {
	var a lab.AdapterSpec
	if err := json.Unmarshal([]byte(description), &a); err != nil {
		return faultf("unreadable adapter: %v", err)
	}
	return lab.KeepAdapter(ctx, a)
}

// KeepGuest runs one QEMU guest of a lab, described in JSON, until ctx ends.
func KeepGuest(ctx context.Context, description string) error {
	var g lab.GuestSpec
	if err := json.Unmarshal([]byte(description), &g); err != nil {
		return faultf("unreadable guest: %v", err)
	}
	err := lab.KeepGuest(ctx, g)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
