package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"

	"heddle/internal/api"
	"heddle/internal/lab/netns"
	"heddle/internal/lab/report"
	"heddle/internal/spec"
)

// AgentOptions are those of "heddle bench control-plane --agent".
type AgentOptions struct {
	// Controller and Heddle are the programs, with the arguments that precede the others.
	Controller, Heddle []string
	// Ports is how many ports the host has, each on a device of its own.
	Ports int
	// Rounds is how often the definition is changed, and how often the controller is killed.
	Rounds int
	// Rest is how long the agent is watched while nothing happens. It reads its devices anew every minute.
	Rest time.Duration
	// Calm is how long it is watched after each piece of work: it gives back what the work took within ten seconds.
	Calm time.Duration
	// Progress is called before every step; nil for silence.
	Progress func(done, total int, what string)
	Now      func() time.Time
}

// LeastRest holds a minute twice: what an agent does every minute is in it.
const LeastRest = 2 * time.Minute

// UsualCalm is long enough for an agent to give back what work took, whatever else the machine does.
const UsualCalm = 15 * time.Second

// mostPorts is how many devices make sense: each has a far end besides.
const mostPorts = 4000

// Check says what is wrong with the options.
func (o AgentOptions) Check() error {
	if o.Ports < 1 || o.Ports > mostPorts {
		return fmt.Errorf("%d ports of an agent: give 1 to %d", o.Ports, mostPorts)
	}
	if o.Rounds < 1 || o.Rest < time.Second || o.Calm < 0 {
		return errors.New("give a positive number of rounds, and a second at least for the time without work")
	}
	return nil
}

// agentRun is a real agent below a real controller.
type agentRun struct {
	AgentOptions
	host, guests *netns.NS
	process      *process
	def          definition
	dir          string
	agent        *exec.Cmd
	ended        chan struct{}
	client       *api.Client
	phases       []phase
}

const (
	agentName = "bench"
	// agentHost is the name of the host in the cluster.
	agentHost = "bench"
	// uplinkDevice is that of the first rack's template.
	uplinkDevice = "ens0f0"
	// agentPatience is how long an agent may take for a call, and to become active.
	agentPatience = time.Minute
	// lookEvery is how often memory is read: the kernel tells the most, and this is for the median.
	lookEvery = 250 * time.Millisecond
)

// RunAgent measures the memory and the CPU time of a real agent with real devices, below a real controller. It leaves
// nothing behind.
func RunAgent(ctx context.Context, o AgentOptions) (rep *report.Report, err error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	env := report.Collect(o.Now())
	r := &agentRun{AgentOptions: o, def: definition{vlan: 100, spare: true}}
	defer func() { err = errors.Join(err, r.close()) }()
	parts := []struct {
		what string
		do   func(context.Context) error
	}{
		{"make the devices", r.build}, {"join", r.join}, {portsConnect, r.connect}, {allPorts, r.changeAll},
		{controllerBack, r.reconnect}, {agentBack, r.restart}, {nothingHappens, r.rest},
	}
	for i, p := range parts {
		if o.Progress != nil {
			o.Progress(i, len(parts), p.what)
		}
		if err := p.do(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", p.what, err)
		}
	}
	return r.report(env), nil
}

// build makes two namespaces, that of the host and that of the guests, and a device in both for each port.
func (r *agentRun) build(context.Context) (err error) {
	if r.host, err = netns.New(fmt.Sprintf("hb%d-agent", os.Getpid())); err != nil {
		return err
	}
	if r.guests, err = netns.New(fmt.Sprintf("hb%d-guests", os.Getpid())); err != nil {
		return err
	}
	there, err := r.guests.Handle()
	if err != nil {
		return err
	}
	defer there.Close()
	err = r.host.Do(func() error {
		for i := range r.Ports + 1 {
			v := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: r.device(i)}, PeerName: r.device(i),
				PeerNamespace: netlink.NsFd(there), PeerHardwareAddr: r.mac(i)}
			if err := netlink.LinkAdd(v); err != nil {
				return fmt.Errorf("make device %s: %w", v.Name, err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return r.guests.Do(func() error {
		for i := range r.Ports + 1 {
			l, err := netlink.LinkByName(r.device(i))
			if err == nil {
				err = netlink.LinkSetUp(l)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// mac is the address that the guest of port i has.
func (r *agentRun) mac(i int) net.HardwareAddr {
	return net.HardwareAddr{2, 0, 0, 0, byte(i >> 8), byte(i)}
}

// device is that of port i, or the host's uplink after the last port.
func (r *agentRun) device(i int) string {
	if i == r.Ports {
		return uplinkDevice
	}
	return fmt.Sprintf("vp%d", i)
}

// join starts a controller and an agent, and makes the host part of the cluster.
func (r *agentRun) join(ctx context.Context) (err error) {
	if r.process, err = newProcess(r.Controller); err != nil {
		return err
	}
	r.process.ns = r.host
	if _, err := r.process.start(ctx, 0); err != nil {
		return err
	}
	if _, err := r.process.Define(ctx, api.Define{File: "fleet.yaml", Content: r.def.text()}); err != nil {
		return err
	}
	if r.dir, err = os.MkdirTemp("", "hb-agent-"); err != nil {
		return err
	}
	if err := os.WriteFile(r.file("heddle.yaml"), []byte("switches: []\n"), 0o600); err != nil {
		return err
	}
	if err := r.start(ctx); err != nil {
		return err
	}
	token, err := r.process.JoinToken(ctx, api.JoinTerms{Labels: map[string]string{"rack": rackName(0)}})
	if err != nil {
		return err
	}
	_, err = r.client.Join(ctx, api.Join{Controller: r.process.address, Token: token.Token, Name: agentHost})
	if err != nil {
		return err
	}
	return r.await(ctx, "has the definition", r.inForce)
}

func (r *agentRun) file(name string) string { return filepath.Join(r.dir, name) }

// command is one of the heddle program for this agent.
func (r *agentRun) command(args ...string) *exec.Cmd {
	all := append(append(append([]string{}, r.Heddle[1:]...), args...), "--run-dir", r.file("run"), "--state-dir",
		r.file("state"))
	c := exec.Command(r.Heddle[0], all...)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	return c
}

// start starts the agent and waits until it answers.
func (r *agentRun) start(ctx context.Context) error {
	log, err := os.OpenFile(r.file("log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	c := r.command("agent", "--name", agentName, "--config", r.file("heddle.yaml"))
	c.Stdout, c.Stderr = log, log
	if err := r.host.Start(c); err != nil {
		return fmt.Errorf("start the agent: %w", err)
	}
	ended := make(chan struct{})
	r.agent, r.ended = c, ended
	go func() {
		_ = c.Wait() // that it has ended is what counts
		close(ended)
	}()
	r.client = api.NewClient(api.SocketPath(r.file("run"), agentName))
	return r.await(ctx, "answers", func(ctx context.Context) error {
		_, err := r.client.State(ctx)
		return err
	})
}

// inForce is nil when the controller knows that the host has the newest definition, with all its ports.
func (r *agentRun) inForce(ctx context.Context) error {
	all, err := r.process.Hosts(ctx)
	if err != nil {
		return err
	}
	for _, h := range all.Hosts {
		if h.Name == agentHost && (h.State == api.HostUp || h.State == api.HostWarning) && h.Ports == r.connected() {
			return nil
		}
	}
	return fmt.Errorf("the controller has %+v", all.Hosts)
}

// connected is how many ports were connected so far.
func (r *agentRun) connected() int {
	for _, p := range r.phases {
		if p.what == portsConnect {
			return r.Ports
		}
	}
	return 0
}

// await waits until something is so, as long as the agent runs.
func (r *agentRun) await(ctx context.Context, what string, is func(context.Context) error) error {
	for began := time.Now(); ; time.Sleep(20 * poll) {
		err := is(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-r.ended:
			text, _ := os.ReadFile(r.file("log")) // what can be said besides
			return fmt.Errorf("the agent has ended: %s", text[max(0, len(text)-2000):])
		case <-ctx.Done():
			return ctx.Err()
		default:
		}
		if time.Since(began) > patience {
			return fmt.Errorf("it is not so that the agent %s: %w", what, err)
		}
	}
}

// port is what connects port i.
func (r *agentRun) port(i int) api.Connect {
	return api.Connect{Port: spec.Port{Name: fmt.Sprintf("vm%d/eth0", i), Switch: "dvs", PortGroup: groupName(i),
		Device: r.device(i), MAC: r.mac(i).String()}}
}

// close removes everything.
func (r *agentRun) close() error {
	var errs []error
	if r.agent != nil {
		down := r.command("down", "--agent", agentName, "--purge")
		errs = append(errs, r.host.Do(func() error {
			if out, err := down.CombinedOutput(); err != nil {
				return fmt.Errorf("remove the switch: %w: %s", err, out)
			}
			return nil
		}))
		_ = r.agent.Process.Kill() // it has ended already, if that worked
		<-r.ended
	}
	if r.process != nil {
		errs = append(errs, r.process.close())
	}
	for _, n := range []*netns.NS{r.host, r.guests} {
		if n != nil {
			errs = append(errs, n.Delete())
		}
	}
	if r.dir != "" {
		errs = append(errs, os.RemoveAll(r.dir))
	}
	return errors.Join(errs...)
}
