package cni

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/version"
	"golang.org/x/sys/unix"

	"heddle/internal/api"
	"heddle/internal/host/interrupt"
	"heddle/internal/spec"
	"heddle/internal/spec/known"
	"heddle/internal/spec/printable"
)

// Times of one invocation.
const (
	wholeTime = 60 * time.Second
	// upTime is how long the port may take from its connection to its first frame.
	upTime  = 10 * time.Second
	upCheck = 10 * time.Millisecond
)

// maxInput limits a network's configuration, in bytes.
const maxInput = 16 << 20

// Main is the plugin: it runs one command, from CNI_COMMAND and standard input, and answers on standard output. If it
// returns an error, that has been answered according to the specification; the program must end with a status other
// than 0.
func Main(ctx context.Context, program string) error {
	ctx, cancel := context.WithTimeout(ctx, wholeTime)
	defer cancel()
	with := func(f func(context.Context, *attachment) error) func(*skel.CmdArgs) error {
		return func(args *skel.CmdArgs) error {
			a, err := parse(args)
			if err != nil {
				return err
			}
			return f(ctx, a)
		}
	}
	if err := readInput(ctx); err != nil {
		e := types.NewError(types.ErrIOFailure, "read the network's configuration from standard input", err.Error())
		return errors.Join(e, e.Print())
	}
	err := skel.PluginMainFuncsWithError(skel.CNIFuncs{Add: with(add), Del: with(del), Check: with(check), GC: with(gc),
		Status: with(status)},
		version.PluginSupports("0.4.0", "1.0.0", "1.1.0"), program)
	if err != nil {
		// The error contains names from the runtime, and may be shown on somebody's terminal.
		err.Msg, err.Details = printable.Text(err.Msg), printable.Text(err.Details)
		return errors.Join(err, err.Print())
	}
	return nil
}

// readInput reads standard input, until ctx ends, and replaces it by the bytes read, because the library reads without
// a limit.
func readInput(ctx context.Context) error {
	text, err := interrupt.Do(ctx, func() ([]byte, error) { return io.ReadAll(io.LimitReader(os.Stdin, maxInput)) })
	if err != nil {
		return err
	}
	fd, err := unix.MemfdCreate("cni", unix.MFD_CLOEXEC)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), "standard input")
	if _, err := f.Write(text); err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	os.Stdin = f
	return nil
}

func (a *attachment) client() *api.Client {
	return api.NewClient(api.SocketPath(a.runDir(), a.agent()))
}

// explain turns the agent's errors into the specification's codes.
func explain(err error) error {
	var answer *api.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, api.ErrNoAgent), errors.Is(err, api.ErrEnded):
		return types.NewError(types.ErrTryAgainLater, "Heddle's agent does not answer", err.Error())
	case errors.As(err, &answer):
		return types.NewError(types.ErrInvalidNetworkConfig, "Heddle's agent refuses", strings.Join(answer.Lines, "; "))
	}
	return err
}

// add connects a container. On an error everything is undone, so that the runtime may try again.
func add(ctx context.Context, a *attachment) (err error) {
	if err := a.check(); err != nil {
		return err
	}
	state, err := a.client().State(ctx)
	if err != nil {
		return explain(err)
	}
	sw, err := a.findSwitch(state)
	if err != nil {
		return err
	}
	s, err := openSandbox(a.netns)
	if err != nil {
		return err
	}
	defer s.close()
	mtu := a.conf.MTU
	if mtu == 0 {
		mtu = sw.MTU
	}
	if err := a.pair(s, mtu); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			// The first error is returned; the runtime's DEL does what cannot be undone here.
			_ = undo(ctx, a)
		}
	}()
	result, err := a.assign(ctx)
	if err != nil {
		return err
	}
	if err := a.configure(s, result); err != nil {
		return err
	}
	if err := a.describe(s, result, mtu); err != nil {
		return err
	}
	if err := a.connect(ctx, sw.Name, result); err != nil {
		return err
	}
	return types.PrintResult(result, a.conf.CNIVersion)
}

// findSwitch finds the switch and checks the port group, before anything is made.
func (a *attachment) findSwitch(state *api.State) (api.Switch, error) {
	i := slices.IndexFunc(state.Switches, func(s api.Switch) bool {
		return s.Name == a.conf.Switch || a.conf.Switch == "" && len(state.Switches) == 1
	})
	if i < 0 {
		if a.conf.Switch == "" && len(state.Switches) > 1 {
			return api.Switch{}, types.NewError(types.ErrInvalidNetworkConfig,
				fmt.Sprintf("this host has %d switches: say which, as \"switch\"", len(state.Switches)),
				"see heddle switch list")
		}
		n := known.Names{What: "switch"}
		for _, s := range state.Switches {
			n.All = append(n.All, s.Name)
		}
		return api.Switch{}, types.NewError(types.ErrInvalidNetworkConfig, n.Missing(a.conf.Switch),
			"see heddle switch list")
	}
	sw := state.Switches[i]
	n := known.Names{What: "port group", Owner: "switch " + sw.Name}
	for _, g := range state.PortGroups {
		if g.Switch != sw.Name {
			continue
		}
		if n.All = append(n.All, g.Name); g.Name == a.conf.PortGroup {
			return sw, nil
		}
	}
	return sw, types.NewError(types.ErrInvalidNetworkConfig, n.Missing(a.conf.PortGroup), "see heddle port-group list")
}

// describe adds the two interfaces to the result.
func (a *attachment) describe(s *sandbox, r *current.Result, mtu int) error {
	l, err := s.LinkByName(a.ifname)
	if err != nil {
		return fmt.Errorf("find the container's interface: %w", err)
	}
	r.Interfaces = []*current.Interface{
		{Name: a.hostDevice(), Mtu: mtu},
		{Name: a.ifname, Mac: l.Attrs().HardwareAddr.String(), Mtu: mtu, Sandbox: a.netns},
	}
	for _, ip := range r.IPs {
		ip.Interface = current.Int(1)
	}
	return nil
}

// connect makes the port and waits until frames pass, so that the container's first packet is not lost. The container's
// MAC is the port's.
func (a *attachment) connect(ctx context.Context, sw string, r *current.Result) error {
	vm, adapter := a.identity()
	_, err := a.client().Connect(ctx,
		api.Connect{VM: vm, Adapter: adapter, Port: spec.Port{Name: a.port(), Switch: sw, PortGroup: a.conf.PortGroup,
			Device: a.hostDevice(),
			MAC:    r.Interfaces[1].Mac,
			Owner:  a.owner()}})
	if err != nil {
		return explain(err)
	}
	ctx, cancel := context.WithTimeout(ctx, upTime)
	defer cancel()
	try := time.NewTicker(upCheck)
	defer try.Stop()
	for {
		p, err := a.portState(ctx)
		if err != nil {
			return err
		}
		if p.State == api.Up || p.State == api.Blocked {
			return nil
		}
		select {
		case <-try.C:
		case <-ctx.Done():
			return types.NewError(types.ErrTryAgainLater, fmt.Sprintf("port %s is not up after %s", p.Name, upTime),
				p.Reason)
		}
	}
}

func (a *attachment) portState(ctx context.Context) (api.Port, error) {
	state, err := a.client().State(ctx)
	if err != nil {
		return api.Port{}, explain(err)
	}
	i := slices.IndexFunc(state.Ports, func(p api.Port) bool { return p.Name == a.port() })
	if i < 0 {
		return api.Port{}, types.NewError(types.ErrUnknownContainer, fmt.Sprintf("there is no port %s", a.port()),
			"it was disconnected by somebody else")
	}
	return state.Ports[i], nil
}

// del undoes an add; it is no error if something, or the namespace, is gone already.
func del(ctx context.Context, a *attachment) error { return undo(ctx, a) }

func undo(ctx context.Context, a *attachment) error {
	return firstOf([]error{disconnect(ctx, a.client(), a.port()), dropPair(a.hostDevice()), a.callIPAM(ctx, "DEL")})
}

// firstOf preserves the code of the first error, which joining would hide.
func firstOf(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// disconnect ends a port, and gives up its static port: the container will not come back. Where no controller takes
// that, the port ends all the same, and the static port stays bound until somebody releases it.
func disconnect(ctx context.Context, c *api.Client, port string) error {
	err := c.Disconnect(ctx, api.Disconnect{Port: port, Release: true})
	if err == nil || errors.Is(err, api.ErrNoAgent) {
		return explain(err)
	}
	state, errState := c.State(ctx)
	if errState == nil && !slices.ContainsFunc(state.Ports, func(p api.Port) bool { return p.Name == port }) {
		return nil
	}
	return explain(err)
}

// check compares the present state with ADD's answer.
func check(ctx context.Context, a *attachment) error {
	if a.conf.PrevResult == nil {
		return types.NewError(types.ErrInvalidNetworkConfig, "CHECK needs the result of ADD as prevResult", "")
	}
	r, err := current.NewResultFromResult(a.conf.PrevResult)
	if err != nil {
		return types.NewError(types.ErrDecodingFailure, "prevResult is not understood", err.Error())
	}
	p, err := a.portState(ctx)
	if err != nil {
		return err
	}
	if p.State == api.Pending || p.State == api.Down {
		return fmt.Errorf("port %s is %s: %s", p.Name, p.State, p.Reason)
	}
	s, err := openSandbox(a.netns)
	if err != nil {
		return err
	}
	defer s.close()
	if err := a.verify(s, r); err != nil {
		return err
	}
	return a.callIPAM(ctx, "CHECK")
}

// gc disconnects every port of the network whose container the runtime does not know any more.
func gc(ctx context.Context, a *attachment) error {
	state, err := a.client().State(ctx)
	if err != nil {
		return explain(err)
	}
	valid := map[string]bool{}
	for _, v := range a.conf.ValidAttachments {
		valid[port(a.conf.Name, v.ContainerID, v.IfName)] = true
	}
	var errs []error
	for _, p := range state.Ports {
		if p.Origin == api.FromRun && strings.HasPrefix(p.Name, portPrefix(a.conf.Name)) && !valid[p.Name] {
			errs = append(errs, disconnect(ctx, a.client(), p.Name), dropPair(p.Device))
		}
	}
	return firstOf(append(errs, a.callIPAM(ctx, "GC")))
}

// status says whether ADD would find an agent, the switch and the port group.
func status(ctx context.Context, a *attachment) error {
	if err := a.check(); err != nil {
		return err
	}
	state, err := a.client().State(ctx)
	if err != nil {
		return types.NewError(types.ErrPluginNotAvailable, "Heddle's agent does not answer", err.Error())
	}
	if _, err := a.findSwitch(state); err != nil {
		return types.NewError(types.ErrPluginNotAvailable, "the network's port group is not there", err.Error())
	}
	return a.callIPAM(ctx, "STATUS")
}
