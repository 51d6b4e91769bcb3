package removal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"heddle/internal/agent/adoption"
	"heddle/internal/agent/flows"
	"heddle/internal/agent/held"
	"heddle/internal/agent/instance"
	"heddle/internal/agent/state"
	"heddle/internal/agent/tunnels"
	"heddle/internal/api"
	"heddle/internal/dataplane"
	"heddle/internal/host/hostdev"
	"heddle/internal/host/netspace"
	"heddle/internal/plan"
	"heddle/internal/uplinks"
)

// stopWait is how long Down waits for a running agent to end.
const stopWait = 30 * time.Second

// Options are the options of Down.
type Options struct {
	// Purge also deletes the configuration and the ports connected by command.
	Purge bool
	// Progress, unless nil, is called with the number of devices that are still attached; Warn is called with what was
	// left in place although it looks like Heddle's.
	Progress func(left int)
	Warn     func(text string)
}

// Down removes everything that the agent of that name put into the kernel, and nothing else: programs, tables, the host
// interfaces it made, and promiscuous mode if it was off before. A running agent is asked to end first. What is
// remembered — the configuration and the ports connected by command — stays for the next start, unless the options say
// otherwise.
func Down(ctx context.Context, p instance.Paths, name string, o Options) error {
	if err := instance.CheckName(name); err != nil {
		return api.NewError(api.Invalid, err.Error())
	}
	if err := instance.Privileged("heddle down"); err != nil {
		return err
	}
	if err := instance.CheckState(p, name); err != nil {
		return api.NewError(api.Invalid, err.Error())
	}
	lock, err := stopAndLock(ctx, p, name)
	if err != nil {
		return err
	}
	defer lock.Release()
	store, err := state.Open(p.StateDir(name))
	if err != nil {
		return err
	}
	return errors.Join(All(p, store, name, o), removeFile(p.LockFile(name)))
}

// All removes everything of the agent from the kernel, gives the devices back and, with purge, deletes the state.
// A failure does not stop the rest.
func All(p instance.Paths, store *state.Store, name string, o Options) error {
	warn := o.Warn
	if warn == nil {
		warn = func(string) {}
	}
	st, err := store.Load()
	errHost := adoption.GiveBack(st, store, name)
	// The programs are removed first: a device is not given back while frames still pass through the switch.
	errRemove := dataplane.Remove(p.Pins(name), o.Progress)
	switch {
	case err != nil:
		err = errors.Join(fmt.Errorf("%w; how devices were before is not known: those that look in every respect "+
			"like ones that Heddle made are removed, others stay as they are (promiscuous uplinks, silenced IPv6)",
			err),
			giveBackHere(&state.State{}, name, false, warn))
		if o.Purge {
			err = errors.Join(err, store.Remove())
		}
	default:
		had := len(st.Held)+len(st.Released)+len(st.Pairs) > 0
		err = giveAllBack(st, name, warn)
		switch {
		case err == nil && o.Purge:
			err = store.Remove()
		case had:
			err = errors.Join(err, store.Save(st))
		}
	}
	return errors.Join(errHost, errRemove, err, instance.Unmount(p), os.RemoveAll(flows.Dir(p, name)),
		os.RemoveAll(p.Ended(name)),
		removeFile(p.Sightings(name)), removeFile(api.SocketPath(p.Run, name)))
}

// giveAllBack gives the devices back in the network namespace they are in, which need not be the caller's.
func giveAllBack(st *state.State, name string, warn func(string)) error {
	here, err := instance.Place()
	if err != nil {
		return err
	}
	if st.Place == "" || st.Place == here {
		return giveBackHere(st, name, true, warn)
	}
	path, err := instance.FindPlace(st.Place)
	if err != nil {
		return err
	}
	if path == "" { // the namespace is gone, and its devices with it
		st.Held, st.Released, st.Pairs = nil, nil, nil
		return giveBackHere(st, name, true, warn)
	}
	return netspace.In(path, func() error { return giveBackHere(st, name, true, warn) })
}

// remembered finds the devices of ports and uplinks that are still those that the state records as held.
func remembered(dev held.Devices, st *state.State) uplinks.Find {
	return func(id plan.PortID) (hostdev.Device, bool, error) {
		h := st.Of(id)
		if h == nil {
			return hostdev.Device{}, false, nil
		}
		return held.Still(dev, *h)
	}
}

func giveBackHere(st *state.State, name string, recorded bool, warn func(string)) error {
	dev, err := hostdev.Open()
	if err != nil {
		return err
	}
	defer dev.Close()
	err = errors.Join(uplinks.SayGoodbye(remembered(dev, st), &st.Memory), held.GiveBack(dev, &st.Devices))
	left, errPairs := held.RemovePairs(dev, &st.Devices, name, recorded)
	for _, text := range left {
		warn(text)
	}
	return errors.Join(err, errPairs, tunnels.Remove(dev, name, nil))
}

// stopAndLock ends a running agent and takes its lock, so that none can start meanwhile. An agent that is still
// starting is asked as soon as it listens; if another process holds the lock (another "heddle down"), stopAndLock waits
// for it.
func stopAndLock(ctx context.Context, p instance.Paths, name string) (*instance.Lock, error) {
	client := api.NewClient(api.SocketPath(p.Run, name))
	ctx, cancel := context.WithTimeout(ctx, stopWait)
	defer cancel()
	try := time.NewTicker(20 * time.Millisecond)
	defer try.Stop()
	for {
		lock, err := instance.Take(p, name)
		if !errors.Is(err, instance.ErrRunning) {
			return lock, err
		}
		var elsewhere *instance.ElsewhereError
		if errors.As(err, &elsewhere) {
			return nil, fmt.Errorf("the agent runs with another run directory: use heddle down --run-dir %s (%w)",
				elsewhere.Run, err)
		}
		asked := client.Stop(ctx)
		if asked != nil && ctx.Err() == nil && !errors.Is(asked, api.ErrNoAgent) && !errors.Is(asked, api.ErrEnded) {
			return nil, fmt.Errorf("ask the running agent to stop: %w", asked)
		}
		select {
		case <-try.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("the agent did not stop within %s: %w", stopWait, err)
		}
	}
}

func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
