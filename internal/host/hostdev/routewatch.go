package hostdev

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"heddle/internal/host/hostroute"
)

// routeWatch reports that a default route of Heddle's own was removed. It has a socket of its own, and the kernel
// filters: a router's thousands of changes a second must not delay the notifications of links.
type routeWatch struct {
	file *os.File
	done chan struct{}
}

// Route reports whether the notification says that a default route of Heddle's was removed.
func (n Note) Route() bool { return n.route }

// Local is the ifindex of the device of this namespace that the notification is about, 0 for none.
func (n Note) Local() uint32 {
	switch {
	case n.address != nil:
		return n.address.index
	case n.nsid == localNS:
		return n.link.index
	}
	return 0
}

func newRouteWatch(notes chan<- Note) (*routeWatch, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open a netlink socket for routes: %w", err)
	}
	if err := onlyOwnRoutes(fd); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("subscribe to route notifications: %w", err)
	}
	w := &routeWatch{file: os.NewFile(uintptr(fd), "netlink routes"), done: make(chan struct{})}
	go w.run(notes)
	return w, nil
}

// onlyOwnRoutes makes the socket receive the removals of default routes with Heddle's protocol number, and nothing
// else.
func onlyOwnRoutes(fd int) error {
	var swapped [2]byte
	binary.NativeEndian.PutUint16(swapped[:], unix.RTM_DELROUTE)
	const dstLen, protocol = unix.NLMSG_HDRLEN + 1, unix.NLMSG_HDRLEN + 5 // of struct rtmsg
	program, err := bpf.Assemble([]bpf.Instruction{
		bpf.LoadAbsolute{Off: 4, Size: 2}, // nlmsg_type
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(binary.BigEndian.Uint16(swapped[:])), SkipTrue: 5},
		bpf.LoadAbsolute{Off: dstLen, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0, SkipTrue: 3},
		bpf.LoadAbsolute{Off: protocol, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: hostroute.Protocol, SkipTrue: 1},
		bpf.RetConstant{Val: 1 << 16},
		bpf.RetConstant{Val: 0},
	})
	if err != nil {
		return err
	}
	filter := make([]unix.SockFilter, len(program))
	for i, c := range program {
		filter[i] = unix.SockFilter{Code: c.Op, Jt: c.Jt, Jf: c.Jf, K: c.K}
	}
	if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{
		Len: uint16(len(filter)), Filter: &filter[0]}); err != nil {
		return err
	}
	return unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK,
		Groups: 1<<(unix.RTNLGRP_IPV4_ROUTE-1) | 1<<(unix.RTNLGRP_IPV6_ROUTE-1)})
}

// run ends when the socket is closed. Whatever arrives means the same; so does the loss of a notification.
func (w *routeWatch) run(notes chan<- Note) {
	defer close(w.done)
	conn, err := w.file.SyscallConn()
	if err != nil {
		return
	}
	b := make([]byte, 4096)
	for {
		err := conn.Read(func(fd uintptr) bool {
			_, _, err := unix.Recvfrom(int(fd), b, 0)
			return !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR)
		})
		if err != nil {
			return
		}
		notes <- Note{nsid: localNS, route: true, at: time.Now()}
	}
}

// close ends the watch; the notes are read meanwhile, or are few.
func (w *routeWatch) close() {
	w.file.Close()
	<-w.done
}
