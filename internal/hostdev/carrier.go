package hostdev

import (
	"slices"
	"sync"
	"time"
)

// carrierEvery is how often the links of the watched devices are read.
const carrierEvery = 20 * time.Millisecond

// carrierWatch reads the links of a few devices at short intervals. The kernel may hold back a device's second notification
// within a second; what is read is true at once (K39).
type carrierWatch struct {
	ask    *asker
	notes  chan<- Note
	quit   chan struct{}
	done   sync.WaitGroup
	mu     sync.Mutex
	watch  []uint32
	wakeUp chan struct{}
}

func newCarrierWatch(notes chan<- Note) (*carrierWatch, error) {
	ask, err := newAsker()
	if err != nil {
		return nil, err
	}
	w := &carrierWatch{ask: ask, notes: notes, quit: make(chan struct{}), wakeUp: make(chan struct{}, 1)}
	w.done.Go(w.run)
	return w, nil
}

func (w *carrierWatch) close() {
	close(w.quit)
	w.done.Wait()
	w.ask.close()
}

// WatchCarrier has the links of the devices with these indexes, and of no others, read every 20 ms; a change is a Note.
func (h *Host) WatchCarrier(indexes []uint32) {
	w := h.carrier
	w.mu.Lock()
	changed := !slices.Equal(w.watch, indexes)
	w.watch = slices.Clone(indexes)
	w.mu.Unlock()
	if changed {
		select {
		case w.wakeUp <- struct{}{}:
		default:
		}
	}
}

func (w *carrierWatch) watched() []uint32 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.watch
}

// run sleeps while nothing is watched.
func (w *carrierWatch) run() {
	tick := time.NewTicker(carrierEvery)
	defer tick.Stop()
	up := map[uint32]bool{}
	for {
		list := w.watched()
		if len(list) == 0 {
			clear(up)
			tick.Stop()
			select {
			case <-w.quit:
				return
			case <-w.wakeUp:
				tick.Reset(carrierEvery)
				continue
			}
		}
		for _, index := range list {
			if !w.look(index, up) {
				return
			}
		}
		select {
		case <-w.quit:
			return
		case <-tick.C:
		}
	}
}

// look reads one device and tells when it is not as it was; false at the end. A failed reading tells nothing: the
// notifications are still there.
func (w *carrierWatch) look(index uint32, up map[uint32]bool) bool {
	l, found, err := w.ask.one(linkKey{localNS, index})
	if err != nil {
		return true
	}
	now := found && l.end.Up()
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

// applyAsked looks at a device again. What the note was made of may be older than the notifications before it.
func (h *Host) applyAsked(index uint32) (bool, error) {
	old, knew := h.links[index]
	if err := h.refreshIndex(index); err != nil {
		return false, err
	}
	now, know := h.links[index]
	return knew != know || old != now, nil
}
