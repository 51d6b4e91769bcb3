package migration

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"heddle/internal/lab/netns"
)

const (
	// earBuffer is what may wait in the kernel for an ear, in bytes; earLook how often it looks whether it is to end.
	earBuffer = 16 << 20
	earLook   = 100 * time.Millisecond
	// earHead is how much of a frame an ear reads, maxHeard how many frames it remembers.
	earHead  = 64
	maxHeard = 4 << 20
)

// heard is one frame at a device.
type heard struct {
	at       time.Time // the kernel's
	out      bool      // it was sent by the device, and not received
	guests   bool      // it has the guest's source MAC
	numbered bool      // it is one of the numbered packets to or from the guest
	rarp     bool      // it announces a MAC (RFC 903)
}

// ear hears the frames at a device. A real guest can't be asked when it got them, and its own clock stands still while
// it does.
type ear struct {
	fd    int
	mac   net.HardwareAddr
	head  int // the bytes before a frame
	ended atomic.Bool
	done  sync.WaitGroup

	mu      sync.Mutex
	frames  []heard
	in, out counts // by class, since it began
	lost    uint64
}

// listen begins to hear what passes a device, in both directions.
func listen(ns *netns.NS, device string, mac net.HardwareAddr) (*ear, error) {
	return listenFor(ns, device, mac, 0, nil)
}

// listenFor is listen for the frames that a filter lets through; nil for all. They are behind head bytes of a tunnel's
// headers; 0 for none.
func listenFor(ns *netns.NS, device string, mac net.HardwareAddr, head int, filter []unix.SockFilter) (*ear, error) {
	e := &ear{fd: -1, mac: mac, head: head}
	err := ns.Do(func() error {
		l, err := net.InterfaceByName(device)
		if err != nil {
			return err
		}
		if e.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
			return err
		}
		wait := unix.NsecToTimeval(earLook.Nanoseconds())
		return errors.Join(
			unix.SetsockoptInt(e.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, earBuffer),
			unix.SetsockoptInt(e.fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1),
			unix.SetsockoptTimeval(e.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait),
			filtered(e.fd, filter),
			unix.Bind(e.fd, &unix.SockaddrLinklayer{Protocol: everyProtocol(), Ifindex: l.Index}))
	})
	if err != nil {
		if e.fd >= 0 {
			err = errors.Join(err, unix.Close(e.fd))
		}
		return nil, fmt.Errorf("listen at %s/%s: %w", ns.Name, device, err)
	}
	e.done.Go(e.hear)
	return e, nil
}

// everyProtocol is ETH_P_ALL as the kernel wants it.
func everyProtocol() uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, unix.ETH_P_ALL))
}

// filtered gives a socket a filter; none for nil.
func filtered(fd int, filter []unix.SockFilter) error {
	if filter == nil {
		return nil
	}
	return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
		&unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]})
}

func (e *ear) hear() {
	buf, oob := make([]byte, e.head+earHead), make([]byte, unix.CmsgSpace(int(unsafe.Sizeof(unix.Timespec{}))))
	for !e.ended.Load() {
		n, control, _, from, err := unix.Recvmsg(e.fd, buf, oob, unix.MSG_TRUNC)
		l, ok := from.(*unix.SockaddrLinklayer)
		if err != nil || !ok || n < e.head+14 {
			continue // it looked, the device went, or this is no Ethernet frame
		}
		e.add(buf[e.head:min(n, len(buf))], n-e.head, l.Pkttype == unix.PACKET_OUTGOING, arrival(oob[:control]))
	}
}

// arrival is the kernel's time of a frame.
func arrival(oob []byte) time.Time {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err == nil {
		for _, m := range messages {
			if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SCM_TIMESTAMPNS &&
				len(m.Data) >= int(unsafe.Sizeof(unix.Timespec{})) {
				seconds, rest := binary.NativeEndian.Uint64(m.Data), binary.NativeEndian.Uint64(m.Data[8:])
				return time.Unix(int64(seconds), int64(rest))
			}
		}
	}
	return time.Now()
}

// classOf is a frame's class by its destination.
func classOf(head []byte) int {
	first, end := binary.BigEndian.Uint32(head), binary.BigEndian.Uint16(head[4:])
	switch {
	case head[0]&1 == 0:
		return unicast
	case first == 0xffffffff && end == 0xffff:
		return broadcast
	case (first == allNodesIPv4 || first == allNodesIPv6) && end == allNodesEnd:
		return allNodes
	}
	return multicast
}

// add counts and remembers a frame of that length.
func (e *ear) add(head []byte, length int, out bool, at time.Time) {
	class := classOf(head)
	e.mu.Lock()
	defer e.mu.Unlock()
	sums := &e.in
	if out {
		sums = &e.out
	}
	sums[classFrames+class]++
	sums[classBytes+class] += uint64(length)
	if len(e.frames) >= maxHeard {
		e.lost++
		return
	}
	const protocol, udp = 23, 17 // its place in an Ethernet frame with IPv4
	guests := bytes.Equal(head[6:12], e.mac)
	e.frames = append(e.frames, heard{at: at, out: out, guests: guests,
		rarp: binary.BigEndian.Uint16(head[12:]) == unix.ETH_P_RARP,
		numbered: (guests || bytes.Equal(head[:6], e.mac)) && len(head) > protocol &&
			binary.BigEndian.Uint16(head[12:]) == unix.ETH_P_IP && head[protocol] == udp})
}

// told hands over the frames heard since the last call.
func (e *ear) told() []heard {
	e.mu.Lock()
	defer e.mu.Unlock()
	list := e.frames
	e.frames = nil
	return list
}

// sums are all frames that the device has received and sent.
func (e *ear) sums() (in, out counts) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.in, e.out
}

// missed is how many frames it could not hear or remember.
func (e *ear) missed() (uint64, error) {
	s, err := unix.GetsockoptTpacketStats(e.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err != nil {
		return 0, fmt.Errorf("read the statistics of a packet socket: %w", err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lost += uint64(s.Drops) // reading resets them
	return e.lost, nil
}

func (e *ear) close() error {
	e.ended.Store(true)
	e.done.Wait()
	return unix.Close(e.fd)
}

// misplaced counts what came at a wrong time in a move: frames that the target delivered to the guest's tap before it
// ran there and the source after it had stopped there, and frames of the guest's that these sent into the network.
func (x *move) misplaced(source, target, sourceWire, targetWire []heard) {
	x.early = countHeard(target, func(h heard) bool { return h.out && h.at.Before(x.times.runs) })
	x.late = countHeard(source, func(h heard) bool { return h.out && h.at.After(x.times.stopped) })
	x.strayEarly = countHeard(targetWire, func(h heard) bool { return h.sentByGuest() && h.at.Before(x.times.runs) })
	x.strayLate = countHeard(sourceWire, func(h heard) bool { return h.sentByGuest() && h.at.After(x.times.stopped) })
}

// sentByGuest holds for the guest's frames at its tap, and at the port of the physical switch where its host is.
func (h heard) sentByGuest() bool { return h.guests && !h.out }

// beyond is how much longer than the guest stood still its numbered packets did, from the last at the source to the
// first at the target, in seconds; NaN when none came.
func (x *move) beyond(source, target []heard, ours func(heard) bool) float64 {
	var last, first time.Time
	for _, h := range source {
		if h.numbered && ours(h) && h.at.Before(x.times.stopped) {
			last = h.at
		}
	}
	for _, h := range target {
		if h.numbered && ours(h) && !h.at.Before(x.times.runs) {
			first = h.at
			break
		}
	}
	if last.IsZero() || first.IsZero() {
		return math.NaN()
	}
	return (first.Sub(last) - x.times.runs.Sub(x.times.stopped)).Seconds()
}

func countHeard(list []heard, ok func(heard) bool) (n uint64) {
	for _, h := range list {
		if ok(h) {
			n++
		}
	}
	return n
}

// silence is the longest time without a numbered packet to the guest at the tap behind which it ran, between two
// times, and when it began. What was delivered at the source after the guest had stopped never reached it.
func (x *move) silence(source, target []heard, from, to time.Time) (longest time.Duration, at time.Time) {
	last := from
	for _, part := range []struct {
		list []heard
		ok   func(time.Time) bool
	}{{source, x.times.stopped.After}, {target, func(t time.Time) bool { return !t.Before(x.times.runs) }}} {
		for _, h := range part.list {
			if !h.numbered || !h.out || !part.ok(h.at) || h.at.Before(from) || h.at.After(to) {
				continue
			}
			if d := h.at.Sub(last); d > longest {
				longest, at = d, last
			}
			last = h.at
		}
	}
	if d := to.Sub(last); d > longest {
		longest, at = d, last
	}
	return longest, at
}

// announced notes when the target announced the guest's MAC first after the guest ran there, and how often it did.
func (x *move) announced(targetWire []heard) {
	x.rarpAfter = math.NaN()
	for _, h := range targetWire {
		if !h.rarp || h.out || h.at.Before(x.times.runs) {
			continue
		}
		if x.rarps++; x.rarps == 1 {
			x.rarpAfter = h.at.Sub(x.times.runs).Seconds()
		}
	}
}
