package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// downPatience is how long "heddle down" may take.
const downPatience = 15 * time.Second

// heddleConfig is the switch under test: every security check on, as by default, and with configured MACs.
func (p *path) heddleConfig() string {
	return fmt.Sprintf(`switches:
  - name: bench
    kind: distributed
    portGroups:
      - {name: guests, vlan: {access: 100}}
ports:
  - {name: a, switch: bench, portGroup: guests, device: %s, mac: %q}
  - {name: b, switch: bench, portGroup: guests, device: %s, mac: %q}
`, portA, p.a.mac, portB, p.b.mac)
}

// setupHeddle connects the guests by a Heddle switch with its own agent, which the given program starts.
func setupHeddle(program []string) func(context.Context, *path) error {
	return func(_ context.Context, p *path) error {
		host, err := p.hosted(peerHeddle, nil)
		if err != nil {
			return err
		}
		return p.agent(machine{ns: host}, program, p.heddleConfig())
	}
}

// agent runs an agent of a machine by a configuration, with a directory of its own.
func (p *path) agent(m machine, program []string, config string) error {
	dir, err := os.MkdirTemp("", "hb-heddle-")
	if err != nil {
		return err
	}
	p.clean.add(func() error { return os.RemoveAll(dir) })
	file := filepath.Join(dir, "heddle.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return err
	}
	return p.startAgent(m, program, dir, file)
}

func (p *path) startAgent(m machine, program []string, dir, config string) error {
	const name = "bench"
	with := func(args ...string) []string {
		return append(append(append([]string{}, program[1:]...), args...),
			"--run-dir", filepath.Join(dir, "run"), "--state-dir", filepath.Join(dir, "state"))
	}
	agent, err := m.start(program[0], with("agent", "--config", config, "--name", name)...)
	if err != nil {
		return err
	}
	p.alive = append(p.alive, agent.failed)
	p.clean.add(func() error {
		ended := agent.end()
		// The path is also cleaned up after Ctrl-C, when the caller's context has ended.
		ctx, cancel := context.WithTimeout(context.Background(), downPatience)
		defer cancel()
		return errors.Join(ended, m.run(ctx, program[0], with("down", "--agent", name, "--purge")...))
	})
	return nil
}
