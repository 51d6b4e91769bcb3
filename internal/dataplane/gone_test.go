package dataplane

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"heddle/internal/plan"
)

// A device may disappear between the plan that has it and its turn to be attached. That is no error: the port stays
// unconnected until the next plan, and all others are attached.
func TestADeviceThatGoesWhileItWaitsIsNoError(t *testing.T) {
	host, _, d := twoPorts(t)
	gone := plan.PortID{Switch: "lab", Name: "vm1"}
	dir := bpffs(t)
	err := host.Do(func() error {
		k, err := Open(Options{PinDir: dir})
		if err != nil {
			return err
		}
		defer k.Close()
		if _, err := k.Change(d, nil); err != nil {
			return err
		}
		l, err := netlink.LinkByIndex(int(d.Attachments[gone].Ifindex))
		if err != nil {
			return err
		}
		if err := netlink.LinkDel(l); err != nil {
			return err
		}
		if left, err := k.Attach(time.Minute); left != 0 || err != nil {
			t.Errorf("%d left, %v", left, err)
		}
		waits := k.Unattached()
		if why := waits[d.Attachments[gone].Ifindex]; len(waits) != 1 || !errors.Is(why, unix.ENODEV) {
			t.Errorf("not attached: %v", waits)
		}
		next := d
		next.Attachments = maps.Clone(d.Attachments)
		delete(next.Attachments, gone)
		if _, err := k.Change(next, nil); err != nil {
			return err
		}
		if left, err := k.Attach(time.Minute); left != 0 || err != nil || len(k.Unattached()) != 0 {
			t.Errorf("after the next plan: %d left, %v, %v", left, err, k.Unattached())
		}
		return Remove(dir, nil)
	})
	if err != nil {
		t.Error(err)
	}
}
