package incus

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/vishvananda/netlink"

	"heddle/internal/attach/libvirt"
)

// System is the host that this process runs on.
type System struct {
	// Proc is where processes are listed: /proc.
	Proc string
}

// Has reports whether a device exists.
func (System) Has(device string) bool {
	_, err := netlink.LinkByName(device)
	return err == nil
}

// Release takes a device out of its bridge.
func (System) Release(device string) error { return libvirt.LeaveBridge(device) }

// QEMU finds the process whose arguments name the UUID, as Incus starts QEMU (-uuid), and whether it has -incoming.
func (s System) QEMU(uuid string) (runs, incoming bool) {
	all, err := filepath.Glob(filepath.Join(s.Proc, "[0-9]*", "cmdline"))
	if err != nil || uuid == "" {
		return false, false
	}
	for _, path := range all {
		line, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		args := bytes.Split(line, []byte{0})
		at := slices.IndexFunc(args, func(a []byte) bool { return option(a, "uuid") })
		if at < 0 || at+1 >= len(args) || string(args[at+1]) != uuid {
			continue
		}
		runs = true
		incoming = incoming || slices.ContainsFunc(args, func(a []byte) bool { return option(a, "incoming") })
	}
	return runs, incoming
}

// option reports whether an argument is an option of QEMU: with one dash or two.
func option(arg []byte, name string) bool {
	return string(arg) == "-"+name || string(arg) == "--"+name
}

// Changes signals when devices of the host came, went or changed; it is closed when that can't be followed any more, or
// done is.
func Changes(done <-chan struct{}) (<-chan struct{}, error) {
	updates, out := make(chan netlink.LinkUpdate, 64), make(chan struct{}, 1)
	if err := netlink.LinkSubscribe(updates, done); err != nil {
		return nil, fmt.Errorf("follow the host's devices: %w", err)
	}
	go func() {
		defer close(out)
		for range updates {
			select {
			case out <- struct{}{}:
			default:
			}
		}
	}()
	return out, nil
}
