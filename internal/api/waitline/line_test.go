package waitline

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"
)

// The line is there once a command has been silent, names the call that is under way for longest, makes way for output,
// and is gone when the answer has come.
func TestLine_IsThereWhileACommandIsSilent(t *testing.T) {
	var terminal bytes.Buffer
	l := New(&terminal)
	call := l.begin("the agent at /a")
	l.show(call, call.since.Add(silentFor-time.Millisecond))
	if terminal.Len() > 0 {
		t.Fatalf("at once: %q", terminal.String())
	}
	l.show(call, call.since.Add(3*time.Second))
	if text := terminal.String(); !strings.Contains(text, "waiting for the agent at /a, 3 s") {
		t.Fatalf("after 3 s: %q", text)
	}
	terminal.Reset()
	if _, err := io.WriteString(l.Before(&terminal), "a note\n"); err != nil {
		t.Fatal(err)
	}
	if want := clearLine + "a note\n"; terminal.String() != want {
		t.Errorf("output: %q, want %q", terminal.String(), want)
	}
	terminal.Reset()
	l.show(call, l.spoke.Add(silentFor/2))
	if terminal.Len() > 0 {
		t.Errorf("just after output: %q", terminal.String())
	}
	l.show(call, l.spoke.Add(4*time.Second))
	terminal.Reset()
	l.done(call)
	if terminal.String() != clearLine {
		t.Errorf("after the answer: %q", terminal.String())
	}
}

// A command that has the whole screen says itself who is waited for: the call that is under way for longest.
func TestLine_NowIsForAWholeScreen(t *testing.T) {
	var terminal bytes.Buffer
	l := New(&terminal)
	l.Mute()
	call, other := l.begin("the controller at https://c1"), l.begin("host esx1")
	if text := l.Now(); text != "" {
		t.Errorf("at once: %q", text)
	}
	call.since = call.since.Add(-3 * time.Second)
	if text := l.Now(); !strings.HasPrefix(text, "waiting for the controller at https://c1, ") {
		t.Errorf("after 3 s: %q", text)
	}
	l.done(call)
	l.done(other)
	if text := l.Now(); text != "" || terminal.Len() > 0 {
		t.Errorf("after the answers: %q; the terminal has %q", text, terminal.String())
	}
}

// Where nobody watches there is no line.
func TestLine_None(t *testing.T) {
	var l *Line
	if text := l.Now(); text != "" {
		t.Errorf("it says %q", text)
	}
	l.Waiting("the agent at /a")()
	l.Mute()
}

// Of several calls the oldest has the line; a command that has the whole screen has none.
func TestLine_OneForSeveralCalls(t *testing.T) {
	var terminal bytes.Buffer
	l := New(&terminal)
	first, other := l.begin("host esx1"), l.begin("host esx2")
	late := other.since.Add(time.Minute)
	if l.show(other, late); terminal.Len() > 0 {
		t.Errorf("beside an older one: %q", terminal.String())
	}
	l.done(first)
	if l.show(other, late); !strings.Contains(terminal.String(), "host esx2") {
		t.Errorf("alone: %q", terminal.String())
	}
	l.Mute()
	terminal.Reset()
	if l.show(other, late); terminal.Len() > 0 {
		t.Errorf("on a screen of another: %q", terminal.String())
	}
}
