package hostdev

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// dumpTries limits how often a list is requested again because devices changed meanwhile.
const dumpTries = 8

// rtextSkipStats is RTEXT_FILTER_SKIP_STATS: answers without the counters, a tenth of the size.
const rtextSkipStats = 1 << 3

// asker sends requests to the kernel over a socket of its own. It stays in the namespace in which it was made. One
// goroutine uses it.
//
// The netlink library takes 64 kB of new memory for every datagram that it reads. With a thousand ports whose guests
// are in namespaces of their own, all of which are read once a minute, that was 64 MB of garbage a minute. So this
// reads into one buffer.
type asker struct {
	fd       int
	sequence uint32
	answer   []byte // room for one datagram
	links    []link // room for the answer of all
}

// answerBytes is the size of the largest datagram with which the kernel answers a request, in bytes: it fills 32 kB at
// most where a list takes several.
const answerBytes = 64 << 10

// answerTime is how long the kernel may take.
const answerTime = 60 // s

func newAsker() (*asker, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open a netlink socket: %w", err)
	}
	err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: answerTime})
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
	}
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("prepare a netlink socket: %w", err)
	}
	return &asker{fd: fd, answer: make([]byte, answerBytes)}, nil
}

func (a *asker) close() { unix.Close(a.fd) }

func (a *asker) request(flags int, index uint32) *nl.NetlinkRequest {
	req := nl.NewNetlinkRequest(unix.RTM_GETLINK, flags)
	msg := nl.NewIfInfomsg(unix.AF_UNSPEC)
	msg.Index = int32(index)
	req.AddData(msg)
	req.AddData(nl.NewRtAttr(unix.IFLA_EXT_MASK, nl.Uint32Attr(rtextSkipStats)))
	return req
}

// all lists the namespace's devices, in a slice that is valid until the next call. If the kernel says that the list
// changed while it was read, it is requested again.
func (a *asker) all() ([]link, error) {
	for range dumpTries {
		a.links = a.links[:0]
		err := a.execute(a.request(unix.NLM_F_DUMP, 0), unix.RTM_NEWLINK, func(b []byte) error {
			l, err := parseLink(b)
			if err == nil {
				a.links = append(a.links, l)
			}
			return err
		})
		switch {
		case errors.Is(err, nl.ErrDumpInterrupted):
			continue
		case err != nil:
			return nil, fmt.Errorf("list the host's devices: %w", err)
		}
		return a.links, nil
	}
	return nil, fmt.Errorf("list the host's devices: they changed during each of %d attempts", dumpTries)
}

// one reads one device of the namespace nsid (localNS: the socket's own). found is false when there is none.
func (a *asker) one(k linkKey) (l link, found bool, err error) {
	req := a.request(0, k.index)
	if k.nsid != localNS {
		req.AddData(nl.NewRtAttr(unix.IFLA_TARGET_NETNSID, nl.Uint32Attr(uint32(k.nsid))))
	}
	if l, found, err = a.asked(req); err != nil {
		err = fmt.Errorf("ask for device %d: %w", k.index, err)
	}
	return l, found, err
}

// named reads the device of the socket's own namespace that has the name now.
func (a *asker) named(name string) (l link, found bool, err error) {
	req := a.request(0, 0)
	req.AddData(nl.NewRtAttr(unix.IFLA_IFNAME, nl.ZeroTerminated(name)))
	if l, found, err = a.asked(req); err != nil {
		err = fmt.Errorf("ask for device %s: %w", name, err)
	}
	return l, found, err
}

// asked executes a request for one device.
func (a *asker) asked(req *nl.NetlinkRequest) (l link, found bool, err error) {
	err = a.execute(req, unix.RTM_NEWLINK, func(b []byte) (err error) {
		l, err = parseLink(b)
		found = err == nil
		return err
	})
	if errors.Is(err, unix.ENODEV) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EPERM) ||
		errors.Is(err, unix.EACCES) {
		// EINVAL: the namespace with the id is gone. EPERM: it may not be read.
		return link{}, false, nil
	}
	return l, found && err == nil, err
}
