package hostdev

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink/nl"
	vns "github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// dumpTries limits how often a list is requested again because devices changed meanwhile.
const dumpTries = 8

// rtextSkipStats is RTEXT_FILTER_SKIP_STATS: answers without the counters, a tenth of the size.
const rtextSkipStats = 1 << 3

// asker sends requests to the kernel over a socket of its own. It stays in the namespace in which it was made.
type asker struct{ socket *nl.SocketHandle }

func newAsker() (*asker, error) {
	s, err := nl.GetNetlinkSocketAt(vns.None(), vns.None(), unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open a netlink socket: %w", err)
	}
	if err := s.SetReceiveTimeout(&nl.SocketTimeoutTv); err != nil {
		s.Close()
		return nil, err
	}
	return &asker{socket: &nl.SocketHandle{Socket: s}}, nil
}

func (a *asker) close() { a.socket.Close() }

func (a *asker) request(flags int, index uint32) *nl.NetlinkRequest {
	req := nl.NewNetlinkRequest(unix.RTM_GETLINK, flags)
	req.Sockets = map[int]*nl.SocketHandle{unix.NETLINK_ROUTE: a.socket}
	msg := nl.NewIfInfomsg(unix.AF_UNSPEC)
	msg.Index = int32(index)
	req.AddData(msg)
	req.AddData(nl.NewRtAttr(unix.IFLA_EXT_MASK, nl.Uint32Attr(rtextSkipStats)))
	return req
}

// all lists the namespace's devices. If the kernel says that the list changed while it was read, it is requested again.
func (a *asker) all() ([]link, error) {
	for range dumpTries {
		var links []link
		var unread error
		err := a.request(unix.NLM_F_DUMP, 0).ExecuteIter(unix.NETLINK_ROUTE, unix.RTM_NEWLINK, func(b []byte) bool {
			l, err := parseLink(b)
			if unread = errors.Join(unread, err); err == nil {
				links = append(links, l)
			}
			return true // the rest of the answer must be read before the next request
		})
		switch {
		case errors.Is(err, nl.ErrDumpInterrupted):
			continue
		case err != nil:
			return nil, fmt.Errorf("list the host's devices: %w", err)
		case unread != nil:
			return nil, unread
		}
		return links, nil
	}
	return nil, fmt.Errorf("list the host's devices: they changed during each of %d attempts", dumpTries)
}

// one reads one device of the namespace nsid (localNS: the socket's own). found is false when there is none.
func (a *asker) one(k linkKey) (l link, found bool, err error) {
	req := a.request(0, k.index)
	if k.nsid != localNS {
		req.AddData(nl.NewRtAttr(unix.IFLA_TARGET_NETNSID, nl.Uint32Attr(uint32(k.nsid))))
	}
	answers, err := req.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWLINK)
	switch {
	case errors.Is(err, unix.ENODEV), errors.Is(err, unix.EINVAL), errors.Is(err, unix.EPERM),
		errors.Is(err, unix.EACCES), err == nil && len(answers) == 0:
		// EINVAL: the namespace with the id is gone. EPERM: it may not be read.
		return link{}, false, nil
	case err != nil:
		return link{}, false, fmt.Errorf("ask for device %d: %w", k.index, err)
	}
	l, err = parseLink(answers[0])
	return l, err == nil, err
}
