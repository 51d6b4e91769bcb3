package flowexport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"heddle/internal/lab/netns"
	"heddle/internal/lab/traffic"
)

// passed are the frames that have passed between a VM and the switch.
type passed struct{ sent, delivered uint64 }

func (p passed) all() uint64 { return p.sent + p.delivered }

// counters reads what the kernel counts in a VM. The switch hands a frame straight to the VM's own device, so only that
// device counts all frames.
type counters struct {
	handle *netlink.Handle
	index  int // of the adapter
	// outside: the adapter is the host's end, where what the VM sent has come in.
	outside bool
	snmp    *os.File // what the VM's protocols count (proc_pid_net(5), RFC 4022 for TCP)
}

// openCounters finds the adapter of a VM.
func openCounters(vm *netns.NS) (c *counters, err error) {
	ns, err := vm.Handle()
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	c = &counters{}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	err = vm.Do(func() (err error) {
		c.snmp, err = os.Open("/proc/thread-self/net/snmp") // it stays that of this namespace
		return err
	})
	if err != nil {
		return nil, err
	}
	if c.handle, err = netlink.NewHandleAt(ns, unix.NETLINK_ROUTE, unix.NETLINK_INET_DIAG); err != nil {
		return nil, fmt.Errorf("open netlink sockets in %s: %w", vm.Name, err)
	}
	links, err := c.handle.LinkList()
	if err != nil {
		return nil, fmt.Errorf("list the devices of %s: %w", vm.Name, err)
	}
	for _, l := range links {
		if l.Type() == "veth" || l.Type() == "tuntap" {
			c.index = l.Attrs().Index
			return c, nil
		}
	}
	return nil, fmt.Errorf("%s has no adapter", vm.Name)
}

// openTap finds the tap of a guest on its host. It counts a frame that is delivered when QEMU takes it for the guest.
func openTap(host *netns.NS, device string) (*counters, error) {
	ns, err := host.Handle()
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	c := &counters{outside: true}
	if c.handle, err = netlink.NewHandleAt(ns, unix.NETLINK_ROUTE); err != nil {
		return nil, fmt.Errorf("open a netlink socket in %s: %w", host.Name, err)
	}
	l, err := c.handle.LinkByName(device)
	if err != nil {
		c.close()
		return nil, fmt.Errorf("find the tap %s of %s: %w", device, host.Name, err)
	}
	c.index = l.Attrs().Index
	return c, nil
}

func (c *counters) close() {
	if c.handle != nil {
		c.handle.Close()
	}
	if c.snmp != nil {
		_ = c.snmp.Close() // it was only read
	}
}

func (c *counters) passed() (p passed, err error) {
	l, err := c.handle.LinkByIndex(c.index)
	if err != nil {
		return p, fmt.Errorf("read the counters of a VM's adapter: %w", err)
	}
	if s := l.Attrs().Statistics; s != nil {
		p = passed{sent: s.TxPackets, delivered: s.RxPackets}
		if c.outside {
			p = passed{sent: s.RxPackets, delivered: s.TxPackets}
		}
	}
	return p, nil
}

// acknowledged is how many bits of the VM's streams their receivers have acknowledged, and how many were sent.
func (c *counters) acknowledged() (done, sent uint64, err error) {
	sockets, err := c.handle.SocketDiagTCPInfo(unix.AF_INET)
	if err != nil {
		return 0, 0, fmt.Errorf("read how far a VM's connections are: %w", err)
	}
	for _, s := range sockets {
		if s.TCPInfo != nil {
			done += 8 * s.TCPInfo.Bytes_acked
			sent += 8 * s.TCPInfo.Bytes_sent
		}
	}
	return done, sent, nil
}

// transactions is how many the VM has completed: it resets the connection of each.
func (c *counters) transactions() (uint64, error) {
	b := make([]byte, 8<<10)
	n, err := c.snmp.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("read what a VM counts of TCP: %w", err)
	}
	return tcpResets(string(b[:n]))
}

// tcpResets is how many established connections were reset by one side (RFC 4022, tcpEstabResets).
func tcpResets(snmp string) (uint64, error) {
	var names []string
	for line := range strings.Lines(snmp) {
		f := strings.Fields(line)
		switch {
		case len(f) == 0 || f[0] != "Tcp:":
		case names == nil:
			names = f
		default:
			if i := slices.Index(names, "EstabResets"); i >= 0 && i < len(f) {
				return strconv.ParseUint(f[i], 10, 64)
			}
		}
	}
	return 0, errors.New("the kernel does not count resets of TCP connections in /proc/net/snmp")
}

// frames are the frames that have passed at the VMs of a host: those of the load alone, and all.
type frames struct{ load, all uint64 }

func (f frames) sub(g frames) frames { return frames{f.load - g.load, f.all - g.all} }

func (r *rig) frames() (f [len(sides)]frames, err error) {
	for _, s := range sides {
		for n, vm := range r.counters[s] {
			p, err := vm.passed()
			if err != nil {
				return f, err
			}
			f[s].all += p.all()
			if n > 0 {
				f[s].load += p.all()
			}
		}
	}
	return f, nil
}

// mark is the progress of a load at an instant, in its unit, and the progress of its sender.
type mark struct {
	at         time.Time
	done, sent uint64
}

// pairsOf are the numbers of the VMs of a cell.
func (r *rig) pairsOf(c cell) iter.Seq[int] {
	return func(yield func(int) bool) {
		first := r.fleet.first[c.adapter]
		for n := first; n < first+c.pairs && yield(n); n++ {
		}
	}
}

// marks reads those of all pairs of a load.
func (r *rig) marks(ctx context.Context, c cell) (all []mark, err error) {
	for n := range r.pairsOf(c) {
		var m mark
		switch {
		case c.kind == traffic.KindStream:
			m.done, m.sent, err = r.counters[tx][n].acknowledged()
			m.at = time.Now()
		case c.kind == traffic.KindCRR && c.emulated():
			m, err = r.guests[tx][n].transactionMark(ctx)
		case c.kind == traffic.KindCRR:
			m.done, err = r.counters[tx][n].transactions()
			m.at, m.sent = time.Now(), m.done
		default:
			m, err = r.packetMark(n)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

// packetMark reads how many packets have come to a VM.
func (r *rig) packetMark(n int) (m mark, err error) {
	to, err := r.counters[rx][n].passed()
	if err != nil {
		return m, err
	}
	m.at, m.done = time.Now(), to.delivered
	from, err := r.counters[tx][n].passed()
	m.sent = from.sent
	return m, err
}

// rate is the sum of all pairs between two marks; lost is the lost share of what was sent.
func rate(before, after []mark) (perSecond, lost float64) {
	var done, sent float64
	for i := range after {
		n := float64(after[i].done - before[i].done)
		perSecond += n / after[i].at.Sub(before[i].at).Seconds()
		done += n
		sent += float64(after[i].sent - before[i].sent)
	}
	if sent > 0 {
		lost = max(0, 1-done/sent)
	}
	return perSecond, lost
}
