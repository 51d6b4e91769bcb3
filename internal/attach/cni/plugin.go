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
	"heddle/internal/spec/printable"
)

// Times of one invocation.
const (
	wholeTime = 60 * time.Second
	// ipamTime is what an IPAM plugin may take of it, undoTime what is left to undo an ADD that failed.
	ipamTime, undoTime = 45 * time.Second, 10 * time.Second
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
		version.PluginSupports("0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"), program)
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

// del undoes an add; it is no error if something, or the namespace, is gone already.
func del(ctx context.Context, a *attachment) error { return undo(ctx, a) }

// undo first has the IPAM plugin give the addresses back: by DHCP it needs the port for that.
func undo(ctx context.Context, a *attachment) error {
	half, cancel := ctx, context.CancelFunc(func() {})
	if end, ok := ctx.Deadline(); ok { // a plugin that does not answer leaves time for the port
		half, cancel = context.WithTimeout(ctx, time.Until(end)/2)
	}
	defer cancel()
	return firstOf([]error{a.callIPAM(half, "DEL"), disconnect(ctx, a.client(), a.port()), dropPair(a.hostDevice())})
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

// isOurs reports whether this plugin has made the port, for a network: it calls a port as the device that it has made,
// and its container is the owner. A guest of another kind may have a name that begins so.
func isOurs(p api.Port, network string) bool {
	return p.Origin == api.FromRun && strings.HasPrefix(p.Name, portPrefix(network)) &&
		strings.HasSuffix(p.Name, "/"+p.Device) && strings.HasPrefix(p.Owner, ownerBegin)
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
		if isOurs(p, a.conf.Name) && !valid[p.Name] {
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
	sw, err := a.findSwitch(state)
	if err != nil {
		return types.NewError(types.ErrPluginNotAvailable, "the network's port group is not there", err.Error())
	}
	if _, err := a.mtu(sw); err != nil {
		return types.NewError(types.ErrPluginNotAvailable, "no container can have the network's MTU", err.Error())
	}
	return a.callIPAM(ctx, "STATUS")
}
