package netspace

import (
	"errors"
	"runtime"

	"github.com/vishvananda/netns"
)

// In runs f on a thread inside the network namespace at path. A thread that cannot be switched back is discarded.
func In(path string, f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		err := func() error {
			before, err := netns.Get()
			if err != nil {
				return err
			}
			defer before.Close()
			there, err := netns.GetFromPath(path)
			if err != nil {
				return err
			}
			defer there.Close()
			if err := netns.Set(there); err != nil {
				return err
			}
			err = f()
			return errors.Join(err, netns.Set(before))
		}()
		if err == nil {
			runtime.UnlockOSThread()
		}
		done <- err
	}()
	return <-done
}
