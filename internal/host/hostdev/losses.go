package hostdev

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Losses are the frames that a device counts as lost since it was made (struct rtnl_link_stats64). Received and sent
// are seen from the device: what the guest sends is received by the host's end of its device.
type Losses struct {
	RxDropped          uint64 // received, but no receiver wanted the frame
	TxDropped          uint64 // no space to queue the frame
	RxErrors, TxErrors uint64
	RxFrames           uint64 // of RxErrors: frames in a wrong form; in a tunnel's device those that ECN forbids
	RxMissed           uint64 // lost because a ring of the device was full
}

// LossReader reads the losses of the devices of one network namespace: that of the thread that calls OpenLosses. Any
// goroutine may use it.
type LossReader struct {
	mu  sync.Mutex
	ask *asker // nil after Close
}

// OpenLosses makes a reader with a socket of its own.
func OpenLosses() (*LossReader, error) {
	ask, err := newAsker()
	if err != nil {
		return nil, err
	}
	return &LossReader{ask: ask}, nil
}

// Close ends the reader; from then on it returns nothing.
func (r *LossReader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ask != nil {
		r.ask.close()
		r.ask = nil
	}
	return nil
}

// statsHeader is the length of struct if_stats_msg, whose ifindex is at 4 and whose filter_mask is at 8.
const statsHeader = 12

// statsOfLinks is the filter of IFLA_STATS_LINK_64, statsLink its attribute.
const (
	statsOfLinks = 1
	statsLink    = 1
)

// statsMessage is the body of a request for every device's counters.
type statsMessage struct{}

func (statsMessage) Len() int { return statsHeader }
func (statsMessage) Serialize() []byte {
	b := make([]byte, statsHeader)
	b[0] = unix.AF_UNSPEC
	binary.NativeEndian.PutUint32(b[8:], statsOfLinks)
	return b
}

// All returns the losses of every device of the namespace, by ifindex.
func (r *LossReader) All() (map[uint32]Losses, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ask == nil {
		return nil, nil
	}
	for range dumpTries {
		req := nl.NewNetlinkRequest(unix.RTM_GETSTATS, unix.NLM_F_DUMP)
		req.AddData(statsMessage{})
		all := map[uint32]Losses{}
		err := r.ask.execute(req, unix.RTM_NEWSTATS, func(b []byte) error { return addLosses(all, b) })
		if errors.Is(err, nl.ErrDumpInterrupted) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read the devices' own counters: %w", err)
		}
		return all, nil
	}
	return nil, fmt.Errorf("read the devices' own counters: the devices changed during each of %d attempts", dumpTries)
}

// addLosses reads the body of an RTM_NEWSTATS message.
func addLosses(all map[uint32]Losses, b []byte) error {
	if len(b) < statsHeader {
		return errShort
	}
	err := eachAttribute(b[statsHeader:], func(kind uint16, v []byte) error {
		if kind == statsLink {
			all[binary.NativeEndian.Uint32(b[4:])] = parseLosses(v)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("netlink: counters of a device: %w", err)
	}
	return nil
}

// Peer returns the losses of a veth's other end, if this namespace may read the other end's namespace; seen is false
// otherwise.
func (r *LossReader) Peer(p Peer) (l Losses, seen bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ask == nil || p.Index == 0 || !p.Elsewhere {
		return Losses{}, false, nil
	}
	req := nl.NewNetlinkRequest(unix.RTM_GETLINK, 0)
	msg := nl.NewIfInfomsg(unix.AF_UNSPEC)
	msg.Index = int32(p.Index)
	req.AddData(msg)
	req.AddData(nl.NewRtAttr(unix.IFLA_TARGET_NETNSID, nl.Uint32Attr(uint32(p.NSID))))
	var unread error
	err = r.ask.execute(req, unix.RTM_NEWLINK, func(b []byte) error {
		if len(b) < unix.SizeofIfInfomsg {
			return errShort
		}
		unread = eachAttribute(b[unix.SizeofIfInfomsg:], func(kind uint16, v []byte) error {
			if kind == unix.IFLA_STATS64 {
				l, seen = parseLosses(v), true
			}
			return nil
		})
		return unread
	})
	if unread != nil {
		return Losses{}, false, fmt.Errorf("netlink: counters of a device: %w", unread)
	}
	if err != nil { // as in asker.one: the other end is gone, or its namespace may not be read
		return Losses{}, false, nil
	}
	return l, seen, nil
}

// parseLosses reads struct rtnl_link_stats64; fields that an older kernel does not have are 0.
func parseLosses(b []byte) Losses {
	field := func(n int) uint64 {
		if len(b) < 8*n+8 {
			return 0
		}
		return binary.NativeEndian.Uint64(b[8*n:])
	}
	return Losses{RxErrors: field(4), TxErrors: field(5), RxDropped: field(6), TxDropped: field(7),
		RxFrames: field(13), RxMissed: field(15)}
}
