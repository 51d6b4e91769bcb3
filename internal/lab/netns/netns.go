package netns

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/vishvananda/netlink"
	vns "github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

const dir = "/var/run/netns"

// NS is a named network namespace.
type NS struct{ Name string }

// New creates the namespace, visible to `ip netns`, with its loopback up. It fails when the name is taken.
func New(name string) (*NS, error) {
	if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
		return nil, fmt.Errorf("network namespace %q exists already", name)
	}
	n := &NS{Name: name}
	err := onThread(func() error {
		h, err := vns.NewNamed(name)
		if err != nil {
			return fmt.Errorf("create network namespace %q: %w", name, err)
		}
		defer h.Close()
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		return netlink.LinkSetUp(lo)
	})
	if err != nil {
		return nil, err
	}
	return n, nil
}

// Open finds an existing named namespace.
func Open(name string) (*NS, error) {
	if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
		return nil, fmt.Errorf("no network namespace %q: %w", name, err)
	}
	return &NS{Name: name}, nil
}

// Path is the file that stands for the namespace.
func (n *NS) Path() string { return filepath.Join(dir, n.Name) }

// Handle opens the namespace; the caller closes it.
func (n *NS) Handle() (vns.NsHandle, error) { return vns.GetFromPath(n.Path()) }

// Do runs f with the calling goroutine's thread inside the namespace. Threads and goroutines that f starts are not
// inside it.
func (n *NS) Do(f func() error) error {
	return onThread(func() error {
		h, err := n.Handle()
		if err != nil {
			return fmt.Errorf("enter network namespace %q: %w", n.Name, err)
		}
		defer h.Close()
		if err := vns.Set(h); err != nil {
			return fmt.Errorf("enter network namespace %q: %w", n.Name, err)
		}
		return f()
	})
}

// Start starts the command inside the namespace.
func (n *NS) Start(cmd *exec.Cmd) error { return n.Do(cmd.Start) }

// Output runs a command inside the namespace and returns what it printed to standard output; the error carries what it
// printed to standard error.
func (n *NS) Output(name string, args ...string) ([]byte, error) {
	var out []byte
	err := n.Do(func() error {
		var err error
		out, err = exec.Command(name, args...).Output()
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return fmt.Errorf("%s in namespace %s: %w: %s", name, n.Name, err, exit.Stderr)
		}
		return err
	})
	return out, err
}

// busyPatience is how long Delete waits for a name that the kernel says is busy.
const busyPatience = 10 * time.Second

// Delete removes the name; the namespace disappears when nothing uses it any more. A name is busy for a moment while
// another mount namespace is being made or ends, or while a second mount covers it: it is removed when that is over.
func (n *NS) Delete() error {
	for deadline := time.Now().Add(busyPatience); ; time.Sleep(10 * time.Millisecond) {
		err := unix.Unmount(n.Path(), unix.MNT_DETACH)
		if err == nil || errors.Is(err, unix.EINVAL) { // EINVAL: an attempt before this one has unmounted it
			err = os.Remove(n.Path())
		}
		if err == nil || errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) || time.Now().After(deadline) {
			return fmt.Errorf("delete network namespace %q: %w", n.Name, err)
		}
	}
}

// onThread runs f on a locked thread and puts the thread back into its namespace afterwards. If that fails, the thread
// is discarded: its goroutine ends while locked.
func onThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		orig, err := vns.Get()
		if err != nil {
			runtime.UnlockOSThread()
			done <- err
			return
		}
		defer orig.Close()
		err = f()
		if back := vns.Set(orig); back == nil {
			runtime.UnlockOSThread()
		}
		done <- err
	}()
	return <-done
}
