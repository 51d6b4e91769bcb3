package run

import (
	"fmt"

	"github.com/vishvananda/netlink"

	"heddle/internal/lab"
)

// keepNeighbours makes every address resolution of a lab's nodes permanent. The kernel would confirm them from time to
// time, some seconds after first use; those frames would be in the counts of whatever is measured then.
func keepNeighbours(l *lab.Lab) error {
	for _, n := range l.Nodes {
		if n.Namespace == "" {
			continue
		}
		ns, err := l.NS(n.Name)
		if err != nil {
			return err
		}
		if err := ns.Do(makePermanent); err != nil {
			return fmt.Errorf("keep the neighbours of %s: %w", n.Name, err)
		}
	}
	return nil
}

// makePermanent does this for the namespace of the calling thread.
func makePermanent() error {
	all, err := netlink.NeighList(0, netlink.FAMILY_ALL)
	if err != nil {
		return err
	}
	const resolved = netlink.NUD_REACHABLE | netlink.NUD_STALE | netlink.NUD_DELAY | netlink.NUD_PROBE
	for i := range all {
		n := &all[i]
		isAddress := n.Family == netlink.FAMILY_V4 || n.Family == netlink.FAMILY_V6 // not an entry of a bridge's table
		if !isAddress || n.State&resolved == 0 {
			continue
		}
		n.State = netlink.NUD_PERMANENT
		if err := netlink.NeighSet(n); err != nil {
			return err
		}
	}
	return nil
}
