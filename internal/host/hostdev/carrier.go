package hostdev

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Times between readings of the links of the watched devices. For a second after the loss of a carrier anywhere on the
// machine, the kernel delays its next such notification (linkwatch; K39): so after every notification the links are
// read at short intervals. slow is for changes in a namespace whose notifications do not arrive here.
const (
	carrierFast  = 20 * time.Millisecond
	carrierSlow  = 250 * time.Millisecond
	carrierAlert = 1500 * time.Millisecond
)

// carrierWatch reads the links of a few devices directly, so that the result is always up to date.
type carrierWatch struct {
	fd      int
	request []byte
	answer  []byte
	notes   chan<- Note
	// stirred is called for every notification.
	stirred <-chan struct{}
	quit    chan struct{}
	done    sync.WaitGroup
	changed chan struct{} // the list has changed
	mu      sync.Mutex
	list    []uint32
}

func newCarrierWatch(notes chan<- Note, stirred <-chan struct{}) (*carrierWatch, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open a netlink socket for carriers: %w", err)
	}
	w := &carrierWatch{fd: fd, request: linkRequest(), answer: make([]byte, 32<<10), notes: notes, stirred: stirred,
		quit: make(chan struct{}), changed: make(chan struct{}, 1)}
	w.done.Go(w.run)
	return w, nil
}

// linkRequest returns a request for one device without its counters; its index is at linkRequestIndex.
func linkRequest() []byte {
	b := make([]byte, unix.NLMSG_HDRLEN+unix.SizeofIfInfomsg+8)
	binary.NativeEndian.PutUint32(b, uint32(len(b)))
	binary.NativeEndian.PutUint16(b[4:], unix.RTM_GETLINK)
	binary.NativeEndian.PutUint16(b[6:], unix.NLM_F_REQUEST)
	mask := b[unix.NLMSG_HDRLEN+unix.SizeofIfInfomsg:]
	binary.NativeEndian.PutUint16(mask, 8)
	binary.NativeEndian.PutUint16(mask[2:], unix.IFLA_EXT_MASK)
	binary.NativeEndian.PutUint32(mask[4:], rtextSkipStats)
	return b
}

const linkRequestIndex = unix.NLMSG_HDRLEN + 4

func (w *carrierWatch) close() error {
	close(w.quit)
	w.done.Wait()
	return unix.Close(w.fd)
}

// WatchCarrier sets the devices, by index, whose links are read in addition to the notifications; a change is a Note.
func (h *Host) WatchCarrier(indexes []uint32) {
	w := h.carrier
	w.mu.Lock()
	defer w.mu.Unlock()
	if slices.Equal(w.list, indexes) {
		return
	}
	w.list = slices.Clone(indexes)
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

func (w *carrierWatch) watched() []uint32 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.list
}

// run sleeps while nothing is watched.
func (w *carrierWatch) run() {
	up := map[uint32]bool{}
	alert := time.Now().Add(carrierAlert)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-w.quit:
			return
		case <-w.changed:
		case <-w.stirred:
			alert = time.Now().Add(carrierAlert)
		case <-timer.C:
		}
		list := w.watched()
		for _, index := range list {
			if !w.look(index, up) {
				return
			}
		}
		timer.Stop()
		if len(list) == 0 {
			clear(up)
		} else if time.Now().Before(alert) {
			timer.Reset(carrierFast)
		} else {
			timer.Reset(carrierSlow)
		}
	}
}

// look reads one device and reports a change of its state; false if the watch has ended. A failed reading is ignored,
// because notifications still arrive.
func (w *carrierWatch) look(index uint32, up map[uint32]bool) bool {
	now, err := w.read(index)
	if err != nil {
		return true
	}
	was, known := up[index]
	up[index] = now
	if !known || was == now {
		return true
	}
	select {
	case w.notes <- Note{nsid: localNS, ask: true, link: link{index: index}, at: time.Now()}:
		return true
	case <-w.quit:
		return false
	}
}

// read reports whether the device is there, administratively up, and has carrier.
func (w *carrierWatch) read(index uint32) (bool, error) {
	binary.NativeEndian.PutUint32(w.request[linkRequestIndex:], index)
	if err := unix.Sendto(w.fd, w.request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return false, err
	}
	// The kernel answers before the request returns.
	n, _, err := unix.Recvfrom(w.fd, w.answer, unix.MSG_DONTWAIT)
	if err != nil {
		return false, err
	}
	const flagsAt = unix.NLMSG_HDRLEN + 8
	if n < flagsAt+4 {
		return false, errShort
	}
	if kind := binary.NativeEndian.Uint16(w.answer[4:]); kind != unix.RTM_NEWLINK {
		code := syscall.Errno(-int32(binary.NativeEndian.Uint32(w.answer[unix.NLMSG_HDRLEN:])))
		if errors.Is(code, unix.ENODEV) {
			return false, nil
		}
		return false, code
	}
	const both = unix.IFF_UP | unix.IFF_LOWER_UP
	return binary.NativeEndian.Uint32(w.answer[flagsAt:])&both == both, nil
}

// applyAsked reads a device again, because the note may be older than what is known now.
func (h *Host) applyAsked(index uint32) (bool, error) {
	old, knew := h.links[index]
	if err := h.refreshIndex(index); err != nil {
		return false, err
	}
	now, know := h.links[index]
	return knew != know || old != now, nil
}
