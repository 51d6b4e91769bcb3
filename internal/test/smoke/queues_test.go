package smoke

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"heddle/internal/lab/netns"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/cable"
	"heddle/internal/test/testkit/realhost"
)

const (
	queueCount = 4
	flowCount  = 64
	perFlow    = 8
)

// queueConfig has a tap and a veth as ports, and an uplink.
const queueConfig = `
switches:
  - name: lab
    kind: distributed
    uplinks: [{name: uplink1, device: up0}]
    portGroups: [{name: plain, vlan: {none: true}}]
ports:
  - {name: tap, switch: lab, portGroup: plain, device: tap0, mac: "02:00:00:00:00:01"}
  - {name: veth, switch: lab, portGroup: plain, device: port-v, mac: "02:00:00:00:00:02"}
`

// queues are the descriptors by which the owner of a device sends and receives, one for each queue.
type queues struct {
	t   *testing.T
	fds []int
	got int
}

func (q *queues) open(fd int, err error) error {
	if err != nil {
		return err
	}
	q.fds = append(q.fds, fd)
	q.t.Cleanup(func() {
		if err := unix.Close(fd); err != nil {
			q.t.Error(err)
		}
	})
	return nil
}

// tapQueues makes a multi-queue tap, as QEMU opens one.
func tapQueues(h *host, name string) *queues {
	h.T.Helper()
	q := &queues{t: h.T}
	err := h.Do(func() error {
		for range queueCount {
			if err := q.open(unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)); err != nil {
				return err
			}
			req, err := unix.NewIfreq(name)
			if err != nil {
				return err
			}
			req.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_MULTI_QUEUE)
			if err := unix.IoctlIfreq(q.fds[len(q.fds)-1], unix.TUNSETIFF, req); err != nil {
				return err
			}
		}
		l, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		return netlink.LinkSetUp(l)
	})
	if err != nil {
		h.T.Fatalf("make tap %s with %d queues: %v", name, queueCount, err)
	}
	return q
}

// socketQueues opens the device in the namespace so that each socket gets what comes by one of its receive queues.
func socketQueues(t *testing.T, ns *netns.NS, device string) *queues {
	t.Helper()
	q := &queues{t: t}
	const all, group = unix.ETH_P_ALL>>8 | unix.ETH_P_ALL<<8&0xff00, 7
	err := ns.Do(func() error {
		l, err := netlink.LinkByName(device)
		if err != nil {
			return err
		}
		for range queueCount {
			if err := q.open(unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK,
				0)); err != nil {
				return err
			}
			fd := q.fds[len(q.fds)-1]
			if err := errors.Join(
				unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1),
				unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 4<<20),
				unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: l.Attrs().Index}),
				unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_FANOUT,
					group|unix.PACKET_FANOUT_QM<<16)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatalf("open the queues of %s: %v", device, err)
	}
	return q
}

// plugWide is plug for a veth whose ends have several queues.
func (h *host) plugWide(device string, mac [6]byte) *queues {
	h.T.Helper()
	ns := testkit.NS(h.T, device)
	handle, err := ns.Handle()
	if err != nil {
		h.T.Fatal(err)
	}
	defer handle.Close()
	err = h.Do(func() error {
		v := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: device, NumTxQueues: queueCount, NumRxQueues: queueCount},
			PeerName: "eth0", PeerNamespace: netlink.NsFd(int(handle)), PeerHardwareAddr: mac[:],
			PeerNumTxQueues: queueCount, PeerNumRxQueues: queueCount}
		return errors.Join(netlink.LinkAdd(v), netlink.LinkSetUp(v))
	})
	if err == nil {
		err = ns.Do(func() error {
			l, err := netlink.LinkByName("eth0")
			if err != nil {
				return err
			}
			return netlink.LinkSetUp(l)
		})
	}
	if err != nil {
		h.T.Fatalf("make veth %s: %v", device, err)
	}
	return socketQueues(h.T, ns, "eth0")
}

// flowFrame is the n-th UDP datagram of a flow; the flow's number is its source port.
func flowFrame(to, from [6]byte, flow uint16, n uint32) []byte {
	f := append(append([]byte{}, to[:]...), from[:]...)
	f = append(f, 8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64, unix.IPPROTO_UDP, 0, 0, 192, 0, 2, from[5], 192, 0, 2, 200)
	f = binary.BigEndian.AppendUint16(f, flow)
	f = append(f, 0x4e, 0x20, 0, 26, 0, 0)
	return append(binary.BigEndian.AppendUint32(f, n), make([]byte, 14)...)
}

// flows sends numbered datagrams of many flows, each flow by one of the sender's queues, from one CPU.
func (q *queues) flows(to, from [6]byte, base uint16) {
	q.t.Helper()
	sent := make(chan error)
	go func() { sent <- q.sendFlows(to, from, base) }()
	if err := <-sent; err != nil {
		q.t.Fatalf("send: %v", err)
	}
}

func (q *queues) sendFlows(to, from [6]byte, base uint16) error {
	if err := cable.Stay(); err != nil {
		return err
	}
	for n := range uint32(perFlow) {
		for flow := range uint16(flowCount) {
			if _, err := unix.Write(q.fds[int(flow)%len(q.fds)], flowFrame(to, from, base+flow, n)); err != nil {
				return err
			}
		}
	}
	return nil
}

// collect receives all of them and holds each flow to one queue and its order; it gives how many queues were used.
func (q *queues) collect(to, from [6]byte, base uint16) (used int) {
	q.t.Helper()
	used, astray := q.sort(to, from, base)
	if astray != "" {
		q.t.Fatal(astray)
	}
	return used
}

// sort is collect that says which flow did not keep to its queue or order, "" when all did.
func (q *queues) sort(to, from [6]byte, base uint16) (used int, astray string) {
	q.t.Helper()
	queueOf, next, inUse := map[uint16]int{}, map[uint16]uint32{}, map[int]bool{}
	deadline := time.Now().Add(realhost.Patience)
	for got := 0; got < flowCount*perFlow; {
		queue, f := q.next(deadline)
		if len(f) < 46 || [6]byte(f) != to || [6]byte(f[6:]) != from || f[12] != 8 {
			continue
		}
		flow, n := binary.BigEndian.Uint16(f[34:]), binary.BigEndian.Uint32(f[42:])
		if flow < base || flow >= base+flowCount {
			continue
		}
		if was, known := queueOf[flow]; known && was != queue {
			astray = fmt.Sprintf("flow %d came by queue %d and by queue %d", flow, was, queue)
		}
		if n != next[flow] {
			astray = fmt.Sprintf("flow %d: datagram %d came where %d was due", flow, n, next[flow])
		}
		queueOf[flow], next[flow], inUse[queue] = queue, n+1, true
		got++
		q.got = got
	}
	return len(inUse), astray
}

// next is the next frame and the queue it came by.
func (q *queues) next(deadline time.Time) (queue int, frame []byte) {
	q.t.Helper()
	polls := make([]unix.PollFd, len(q.fds))
	for i, fd := range q.fds {
		polls[i] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
	}
	for {
		n, err := unix.Poll(polls, int(max(0, time.Until(deadline).Milliseconds())))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			q.t.Fatalf("%d frames, then no more: %v", q.got, err)
		}
		for i, p := range polls {
			if p.Revents&unix.POLLIN == 0 {
				continue
			}
			buf := make([]byte, 2048)
			n, err := unix.Read(q.fds[i], buf)
			if errors.Is(err, unix.EAGAIN) {
				continue
			}
			if err != nil {
				q.t.Fatalf("receive: %v", err)
			}
			return i, buf[:n]
		}
	}
}

// TestQueuesKeepFlowsInOrderAndSpreadThem: between devices with several queues, a flow stays in one queue and in order,
// and different flows use several.
func TestQueuesKeepFlowsInOrderAndSpreadThem(t *testing.T) {
	testkit.Root(t)
	h := newHost(t, testkit.NS(t, "host"))
	tap, veth, wire := tapQueues(h, "tap0"), h.plugWide("port-v", cable.MAC(2)), h.plugWide("up0", cable.MAC(99))
	h.Start(queueConfig)
	h.Up("tap", "veth", "uplink1")
	for i, c := range []struct {
		name     string
		from, to *queues
		src, dst [6]byte
	}{
		{"tap to uplink", tap, wire, cable.MAC(1), cable.MAC(99)}, {"uplink to tap", wire, tap, cable.MAC(99),
			cable.MAC(1)},
		{"tap to veth", tap, veth, cable.MAC(1), cable.MAC(2)}, {"veth to tap", veth, tap, cable.MAC(2), cable.MAC(1)},
		{"uplink to veth", wire, veth, cable.MAC(99), cable.MAC(2)}, {"veth to uplink", veth, wire, cable.MAC(2),
			cable.MAC(99)},
	} {
		t.Run(c.name, func(t *testing.T) {
			from, to := &queues{t: t, fds: c.from.fds}, &queues{t: t, fds: c.to.fds}
			base := uint16(10000 + 1000*i)
			from.flows(c.dst, c.src, base)
			used := to.collect(c.dst, c.src, base)
			t.Logf("%d flows came by %d of %d queues", flowCount, used, queueCount)
			if used < 2 {
				t.Errorf("%d flows came by %d queue", flowCount, used)
			}
		})
	}
}
