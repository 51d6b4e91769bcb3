package waitline

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// A command that has nothing to show says after silentFor who has not answered yet, and renews that every waitingEvery.
const (
	silentFor    = 900 * time.Millisecond
	waitingEvery = time.Second
)

// clearLine erases the line the cursor is in (ECMA-48: carriage return, erase in line).
const clearLine = "\r\x1b[K"

// Line shows on a terminal who is waited for, in a line that goes when the command writes something itself. It
// implements api.Waits. A nil one shows nothing.
type Line struct {
	out io.Writer // the terminal

	mu    sync.Mutex
	calls []*waitedCall // the oldest first
	spoke time.Time     // when the command has written something
	shown bool
	muted bool // something else has the whole screen
}

// waitedCall is a call without an answer yet.
type waitedCall struct {
	who   string
	since time.Time
}

// Waiting shows who is asked, if that takes long. What it returns is called once, when it is over.
func (w *Line) Waiting(who string) (answered func()) {
	if w == nil {
		return func() {}
	}
	call := w.begin(who)
	stop := make(chan struct{})
	go func() {
		tick := time.NewTicker(waitingEvery)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case now := <-tick.C:
				w.show(call, now)
			}
		}
	}()
	return func() {
		close(stop)
		w.done(call)
	}
}

// begin takes in a call that is under way.
func (w *Line) begin(who string) *waitedCall {
	call := &waitedCall{who, time.Now()}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, call)
	return call
}

// show writes the line for a call, if no older one has it and the command has been silent.
func (w *Line) show(call *waitedCall, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.muted || len(w.calls) == 0 || w.calls[0] != call || now.Sub(call.since) < silentFor ||
		now.Sub(w.spoke) < silentFor {
		return
	}
	fmt.Fprintf(w.out, "%swaiting for %s, %d s (Ctrl-C ends this command)", clearLine, call.who,
		int(now.Sub(call.since).Seconds()))
	w.shown = true
}

// Now says who is waited for, and since when, for a command that shows that itself; "" for nobody, or not for long.
func (w *Line) Now() string {
	if w == nil {
		return ""
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.calls) == 0 || time.Since(w.calls[0].since) < silentFor {
		return ""
	}
	return fmt.Sprintf("waiting for %s, %d s", w.calls[0].who, int(time.Since(w.calls[0].since).Seconds()))
}

func (w *Line) done(call *waitedCall) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, c := range w.calls {
		if c == call {
			w.calls = append(w.calls[:i], w.calls[i+1:]...)
			break
		}
	}
	if len(w.calls) == 0 {
		w.clear()
	}
}

// clear removes the line. The caller holds the lock.
func (w *Line) clear() {
	if w.shown {
		fmt.Fprint(w.out, clearLine)
		w.shown = false
	}
}

// speak makes way for what the command writes.
func (w *Line) speak() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clear()
	w.spoke = time.Now()
}

// Mute ends the line for a command that takes the whole screen.
func (w *Line) Mute() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clear()
	w.muted = true
}

// New makes the line of a terminal.
func New(terminal io.Writer) *Line { return &Line{out: terminal} }

// Before is an output of the command, of w: what is written there takes the place of the line.
func (w *Line) Before(out io.Writer) io.Writer { return speaking{out, w} }

// speaking is output before which the line goes.
type speaking struct {
	w    io.Writer
	line *Line
}

func (s speaking) Write(p []byte) (int, error) {
	s.line.speak()
	return s.w.Write(p)
}
