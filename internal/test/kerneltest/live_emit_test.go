package kerneltest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"heddle/internal/observe"
)

// emit sends a frame as the owner of a port, or from the network at an uplink. Every owner must receive exactly what is
// expected, and the counters must change as expected. It returns what each owner received.
func (h *host) emit(at, frame string, want ...outcome) map[string]captured {
	h.t.Helper()
	e := expectation{copies: map[string][]byte{}, refused: map[string]string{}}
	for _, o := range want {
		o(&e, frame)
	}
	lines, got := h.carry(at, wire(frame))
	if d := cmp.Diff(e.lines(), lines); d != "" {
		h.t.Errorf("%s emits %s (-want +got):\n%s", at, frame, d)
	}
	return got
}

// carry sends a frame. It returns, as sorted lines, what every owner received and which counters changed, and the
// received frames by owner.
func (h *host) carry(at string, frame []byte) ([]string, map[string]captured) {
	h.t.Helper()
	before := h.counters()
	onOneCPU(h.t, func() {
		if err := h.ends[at].inject(frame); err != nil {
			h.t.Fatal(err)
		}
	})
	h.await(at+"'s frame is switched", func() bool { return h.received(at) > received(before, at) })
	lines, last := []string{}, map[string]captured{}
	for name, list := range h.flush() {
		for _, c := range list {
			lines = append(lines, fmt.Sprintf("%s gets %x", name, c.frame))
			last[name] = c
		}
	}
	lines = append(lines, h.told(frame, before)...)
	slices.Sort(lines)
	return lines, last
}

// told is what the counters say became of the one frame sent since before. The host's stack is the one receiver whose
// bytes are not seen.
func (h *host) told(sent []byte, before map[string]observe.Counters) []string {
	var lines []string
	for name, now := range h.counters() {
		was := before[name]
		for why, n := range now.Refused {
			for range n - was.Refused[why] {
				lines = append(lines, fmt.Sprintf("%s refused: %s", name, why))
			}
		}
		for why, n := range now.Drops {
			for range n - was.Drops[why] {
				lines = append(lines, disposition(why.String(), false))
			}
		}
		for range now.PacketsToHost - was.PacketsToHost {
			lines = append(lines, fmt.Sprintf("host gets %x", sent))
		}
		for range now.Delivered - was.Delivered {
			lines = append(lines, disposition("", true))
		}
	}
	return lines
}

func (h *host) counters() map[string]observe.Counters {
	h.t.Helper()
	all, err := h.k.Counters()
	if err != nil {
		h.t.Fatal(err)
	}
	byName := map[string]observe.Counters{}
	for id, c := range all {
		byName[label(id)] = c
	}
	return byName
}

func received(all map[string]observe.Counters, name string) uint64 {
	c := all[name]
	return c.Received()
}

func (h *host) received(name string) uint64 { return received(h.counters(), name) }

// await polls a condition that must come true.
func (h *host) await(what string, true func() bool) {
	h.t.Helper()
	for deadline := time.Now().Add(patience); !true(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			h.t.Fatalf("waited in vain: %s", what)
		}
	}
}

// flush returns what each owner has received.
func (h *host) flush() map[string][]captured {
	h.t.Helper()
	return h.gather()()
}

// drain is flush for one owner.
func (h *host) drain(name string) []captured {
	h.t.Helper()
	return h.gather(name)()[name]
}

// gather reads what each of the owners, all without names, receives, beside what the test does, so that no queue of
// theirs fills: a tap's holds a thousand frames, and a stream may have sent more by the time a slow machine has changed
// something. The function that it returns ends that and returns it. A marker sent to each owner past the switch, on the
// CPU the frames took, comes after all of it.
func (h *host) gather(names ...string) func() map[string][]captured {
	h.t.Helper()
	if names == nil {
		names = slices.Collect(maps.Keys(h.ends))
	}
	marker := binary.BigEndian.AppendUint64(wire("all ee0000000001 88b5 [0]"), uint64(time.Now().UnixNano()))
	marker = append(marker, make([]byte, 60-len(marker))...)
	lists, errs := make([][]captured, len(names)), make([]error, len(names))
	var readers sync.WaitGroup
	for i, name := range names {
		e := h.ends[name]
		readers.Go(func() { lists[i], errs[i] = e.until(marker) })
	}
	return func() map[string][]captured {
		h.t.Helper()
		onOneCPU(h.t, func() {
			for _, name := range names {
				if _, err := unix.Write(h.ends[name].back, marker); err != nil {
					h.t.Errorf("%s: send the marker: %v", name, err)
				}
			}
		})
		readers.Wait()
		got := map[string][]captured{}
		for i, name := range names {
			if errs[i] != nil {
				h.t.Fatalf("%s, after %d frames: %v", name, len(lists[i]), errs[i])
			}
			if lists[i] != nil {
				got[name] = lists[i]
			}
		}
		return got
	}
}

// until reads frames until that one comes.
func (e *end) until(marker []byte) (got []captured, err error) {
	for {
		c, err := e.next()
		if err != nil || bytes.Equal(c.frame, marker) {
			return got, err
		}
		got = append(got, c)
	}
}

// onOneCPU runs f on one CPU: the kernel keeps the order of frames only there.
func onOneCPU(t *testing.T, f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var allowed, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		t.Error(err)
	}
	for cpu := range len(allowed) * 64 {
		if allowed.IsSet(cpu) {
			one.Set(cpu)
			break
		}
	}
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		t.Error(err)
	}
	defer func() {
		if err := unix.SchedSetaffinity(0, &allowed); err != nil {
			t.Error(err)
		}
	}()
	f()
}
