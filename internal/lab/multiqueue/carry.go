package multiqueue

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"heddle/internal/lab/netns"
	"heddle/internal/lab/qemu"

	"github.com/vishvananda/netlink"
)

// End is one of the two taps.
type End struct {
	NS     *netns.NS // nil: the caller's
	Device string
}

// Make makes both taps, with this many queues and an MTU in bytes, and sets them up. The VM's has the MAC; the host's
// has one that the kernel chooses, and which no frame carries.
func Make(host, vm End, queues, mtu int, mac net.HardwareAddr) error {
	for _, e := range []End{host, vm} {
		if err := qemu.CreateTap(e.NS, e.Device, queues, mtu); err != nil {
			return err
		}
	}
	return vm.do(func() error {
		l, err := netlink.LinkByName(vm.Device)
		if err == nil {
			err = netlink.LinkSetHardwareAddr(l, mac)
		}
		if err != nil {
			return fmt.Errorf("give %s the address %s: %w", vm.Device, mac, err)
		}
		return nil
	})
}

func (e End) do(f func() error) error {
	if e.NS != nil {
		return e.NS.Do(f)
	}
	return f()
}

// pair is one pair of queues: a descriptor of either tap.
type pair struct {
	host, vm int
	counts   *Counts
	buf      []byte
}

const (
	// largest is the longest frame with its virtio-net header: a segment that the receiver's side is to cut.
	largest = 64<<10 + 128
	// batch is how many frames a thread carries one way before it looks at the other.
	batch = 64
	// idleWake is how late a thread that has nothing to carry notices that it must end, in milliseconds.
	idleWake = 100
)

// Carry carries frames between the taps, which Make made, until ctx ends, and counts them in a file. While it runs both
// taps have a carrier.
func Carry(ctx context.Context, host, vm End, queues int, countsFile string) (err error) {
	counts, unmap, err := createCounts(countsFile, queues)
	if err != nil {
		return err
	}
	defer unmap()
	pairs, err := open(host, vm, queues)
	defer func() {
		for _, p := range pairs {
			unix.Close(p.host)
			unix.Close(p.vm)
		}
	}()
	if err != nil {
		return err
	}
	// Each thread blocks in system calls; none of them shall wait for another one's.
	runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), queues+1))
	group, ctx := errgroup.WithContext(ctx)
	var stop atomic.Bool
	defer context.AfterFunc(ctx, func() { stop.Store(true) })()
	for i, p := range pairs {
		p.counts = &counts[i]
		group.Go(func() error {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			if err := p.carry(&stop); err != nil {
				return fmt.Errorf("queue %d of %s: %w", i, host.Device, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// open opens every queue of both taps.
func open(host, vm End, queues int) (pairs []*pair, err error) {
	for range queues {
		p := &pair{host: -1, vm: -1, buf: make([]byte, largest)}
		pairs = append(pairs, p)
		for _, of := range []struct {
			end End
			fd  *int
		}{{host, &p.host}, {vm, &p.vm}} {
			err := of.end.do(func() (err error) {
				*of.fd, err = openQueue(of.end.Device, queues > 1)
				return err
			})
			if err != nil {
				return pairs, fmt.Errorf("open a queue of %s: %w", of.end.Device, err)
			}
		}
	}
	return pairs, nil
}

// openQueue opens the next queue of a tap in the present namespace. Checksums and segmentation are left to the other
// side, as a virtio-net adapter does that offers both.
func openQueue(device string, several bool) (fd int, err error) {
	if fd, err = unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0); err != nil {
		return -1, err
	}
	ifr, err := unix.NewIfreq(device)
	if err == nil {
		flags := uint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
		if several {
			flags |= unix.IFF_MULTI_QUEUE
		}
		ifr.SetUint16(flags)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr)
	}
	if err == nil {
		err = unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, unix.TUN_F_CSUM|unix.TUN_F_TSO4|unix.TUN_F_TSO6|
			unix.TUN_F_TSO_ECN)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// carry moves frames both ways until it is stopped.
func (p *pair) carry(stop *atomic.Bool) error {
	waiting := []unix.PollFd{{Fd: int32(p.host), Events: unix.POLLIN}, {Fd: int32(p.vm), Events: unix.POLLIN}}
	for !stop.Load() {
		in, err := p.move(p.host, p.vm, &p.counts.ToVM, &p.counts.RefusedToVM)
		if err != nil {
			return err
		}
		out, err := p.move(p.vm, p.host, &p.counts.FromVM, &p.counts.RefusedFromVM)
		if err != nil {
			return err
		}
		if in || out {
			continue
		}
		if _, err := unix.Poll(waiting, idleWake); err != nil && err != unix.EINTR {
			return fmt.Errorf("wait for frames: %w", err)
		}
	}
	return nil
}

// move carries a batch one way, and says whether there was anything. A frame that the receiving tap does not take, such
// as one that is down, is refused: nothing of it is left.
func (p *pair) move(from, to int, moved, refused *uint64) (any bool, err error) {
	for range batch {
		n, err := unix.Read(from, p.buf)
		switch {
		case err == unix.EAGAIN:
			return any, nil
		case err == unix.EINTR:
			continue
		case err != nil:
			return any, fmt.Errorf("read a frame: %w", err)
		}
		any = true
		if _, err := unix.Write(to, p.buf[:n]); err == nil {
			atomic.AddUint64(moved, 1)
		} else if errors.Is(err, unix.EBADFD) {
			return any, fmt.Errorf("write a frame: %w", err)
		} else {
			atomic.AddUint64(refused, 1)
		}
	}
	return any, nil
}
