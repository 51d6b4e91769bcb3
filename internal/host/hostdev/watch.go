package hostdev

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// receiveBuffer is the size of the buffer for the kernel's notifications while the agent is busy, in bytes: about 1 kB
// each, so that several thousand devices may change at once.
const receiveBuffer = 8 << 20

// Note is one notification: a device of some namespace or an address of this one changed or was removed, or
// notifications were lost.
type Note struct {
	nsid   int32
	gone   bool
	resync bool
	ask    bool // the device must be read again
	route  bool // a default route of Heddle's was removed
	link   link
	at     time.Time
	// address, instead of link, was added to or removed from the host
	address *address
}

// At returns when the notification was read.
func (n Note) At() time.Time { return n.at }

// watcher reads address notifications of this namespace, and link notifications of it and of every namespace for which
// it has an id; listing a veth makes the kernel assign an id to the namespace of its other end.
type watcher struct {
	file  *os.File
	notes chan Note
	// stirred is called for every datagram.
	stirred chan struct{}
}

func newWatcher() (*watcher, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open a netlink socket for notifications: %w", err)
	}
	if err := prepare(fd); err != nil {
		unix.Close(fd)
		return nil, err
	}
	w := &watcher{file: os.NewFile(uintptr(fd), "netlink notifications"), notes: make(chan Note, 1024),
		stirred: make(chan struct{}, 1)}
	go w.run()
	return w, nil
}

func prepare(fd int) error {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer); err != nil {
		return fmt.Errorf("enlarge the netlink receive buffer (needs CAP_NET_ADMIN; run as root): %w", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_LISTEN_ALL_NSID, 1); err != nil {
		return fmt.Errorf("listen to all namespaces' devices (needs CAP_NET_BROADCAST; run as root): %w", err)
	}
	addr := &unix.SockaddrNetlink{Family: unix.AF_NETLINK,
		Groups: 1<<(unix.RTNLGRP_LINK-1) | 1<<(unix.RTNLGRP_IPV4_IFADDR-1) | 1<<(unix.RTNLGRP_IPV6_IFADDR-1)}
	if err := unix.Bind(fd, addr); err != nil {
		return fmt.Errorf("subscribe to device notifications: %w", err)
	}
	return nil
}

func (w *watcher) close() { w.file.Close() }

// run ends, and closes the channel, when the socket is closed.
func (w *watcher) run() {
	defer close(w.notes)
	conn, err := w.file.SyscallConn()
	if err != nil {
		return
	}
	data, control := make([]byte, 64<<10), make([]byte, 64)
	for {
		var n, cn, flags int
		var rerr error
		err := conn.Read(func(fd uintptr) bool {
			n, cn, flags, _, rerr = unix.Recvmsg(int(fd), data, control, 0)
			return !errors.Is(rerr, unix.EAGAIN) && !errors.Is(rerr, unix.EINTR)
		})
		switch {
		case err != nil:
			return
		case rerr != nil, flags&unix.MSG_TRUNC != 0:
			w.notes <- Note{resync: true, at: time.Now()} // ENOBUFS: listing again finds what was lost
		default:
			select {
			case w.stirred <- struct{}{}:
			default:
			}
			w.deliver(data[:n], namespaceOf(control[:cn]))
		}
	}
}

// deliver passes on the messages of one datagram; one that cannot be read means that something was missed.
func (w *watcher) deliver(b []byte, nsid int32) {
	msgs, err := syscall.ParseNetlinkMessage(b)
	if err != nil {
		w.notes <- Note{resync: true, at: time.Now()}
		return
	}
	for _, m := range msgs {
		if m.Header.Type == unix.RTM_NEWADDR || m.Header.Type == unix.RTM_DELADDR {
			w.deliverAddress(m, nsid)
			continue
		}
		if m.Header.Type != unix.RTM_NEWLINK && m.Header.Type != unix.RTM_DELLINK {
			continue
		}
		if len(m.Data) > 0 && m.Data[0] != unix.AF_UNSPEC {
			continue // how a bridge or IPv6 sees the device
		}
		l, err := parseLink(m.Data)
		if err != nil {
			w.notes <- Note{resync: true, at: time.Now()}
			continue
		}
		w.notes <- Note{nsid: nsid, gone: m.Header.Type == unix.RTM_DELLINK, link: l, at: time.Now()}
	}
}

// deliverAddress passes on a change of an address of this namespace; those of others are ignored.
func (w *watcher) deliverAddress(m syscall.NetlinkMessage, nsid int32) {
	if nsid != localNS {
		return
	}
	a, err := parseAddress(m.Data)
	if err != nil {
		w.notes <- Note{resync: true, at: time.Now()}
		return
	}
	w.notes <- Note{nsid: localNS, gone: m.Header.Type == unix.RTM_DELADDR, address: &a, at: time.Now()}
}

// namespaceOf reads from which namespace a notification came; one from the socket's own namespace has no id.
func namespaceOf(control []byte) int32 {
	msgs, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return localNS
	}
	for _, m := range msgs {
		if m.Header.Level == unix.SOL_NETLINK && m.Header.Type == unix.NETLINK_LISTEN_ALL_NSID {
			return int32(word(m.Data))
		}
	}
	return localNS
}
