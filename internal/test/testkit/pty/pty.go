package pty

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// Terminal is a pseudo-terminal of that many columns and rows.
type Terminal struct {
	t testing.TB
	// Program is the end for the program under test, which stays open until the test ends.
	Program *os.File
	user    *os.File

	mu            sync.Mutex
	raw           strings.Builder
	columns, rows int
	// The screen: characters, and where the next one goes. alternate says that a program has its own screen.
	cells     [][]rune
	x, y      int
	alternate bool
	hidden    bool // the cursor
	part      []byte
}

// Open makes a terminal; it goes with the test.
func Open(t testing.TB, columns, rows int) *Terminal {
	t.Helper()
	user, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(user.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(user.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := &Terminal{t: t, Program: program, user: user}
	p.Resize(columns, rows)
	stop, done := make(chan struct{}), make(chan struct{})
	go p.follow(stop, done)
	t.Cleanup(func() {
		close(stop)
		<-done
		_ = user.Close() // hangs up: a read that waits at the other end returns
		_ = program.Close()
	})
	return p
}

// Resize changes the size of the window; the program gets SIGWINCH if it is in the foreground.
func (p *Terminal) Resize(columns, rows int) {
	p.t.Helper()
	p.mu.Lock()
	p.columns, p.rows = columns, rows
	p.clear()
	p.mu.Unlock()
	if err := unix.IoctlSetWinsize(int(p.user.Fd()), unix.TIOCSWINSZ,
		&unix.Winsize{Col: uint16(columns), Row: uint16(rows)}); err != nil {
		p.t.Fatal(err)
	}
}

// Settings are those of the terminal, as stty shows them.
func (p *Terminal) Settings() unix.Termios {
	p.t.Helper()
	s, err := unix.IoctlGetTermios(int(p.Program.Fd()), unix.TCGETS)
	if err != nil {
		p.t.Fatal(err)
	}
	return *s
}

// Type sends what a person types.
func (p *Terminal) Type(text string) {
	p.t.Helper()
	if _, err := p.user.WriteString(text); err != nil {
		p.t.Fatal(err)
	}
}

// follow reads until it is stopped. It does not wait in a read, which would keep the file open.
func (p *Terminal) follow(stop <-chan struct{}, done chan<- struct{}) {
	defer close(done)
	b := make([]byte, 4096)
	fds := []unix.PollFd{{Fd: int32(p.user.Fd()), Events: unix.POLLIN}}
	for {
		select {
		case <-stop:
			return
		default:
		}
		if n, err := unix.Poll(fds, 20); err != nil || n == 0 || fds[0].Revents&unix.POLLIN == 0 {
			continue
		}
		n, err := p.user.Read(b)
		if err != nil {
			continue
		}
		p.mu.Lock()
		p.raw.Write(b[:n])
		p.part = append(p.part, b[:n]...)
		p.digest()
		p.mu.Unlock()
	}
}

// Raw is everything that was written so far.
func (p *Terminal) Raw() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.raw.String()
}

// Screen is what can be read on the screen, a line each; Own and Hidden say whether a program has a screen of its own,
// and has hidden the cursor.
func (p *Terminal) Screen() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var b strings.Builder
	for _, line := range p.cells {
		b.WriteString(strings.TrimRight(string(line), " ") + "\n")
	}
	return b.String()
}

// Own reports whether a program has a screen of its own at present.
func (p *Terminal) Own() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.alternate
}

// Hidden reports whether the cursor is hidden.
func (p *Terminal) Hidden() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hidden
}

// patience is how long something that must come is awaited.
const patience = time.Minute

// Await waits until the screen is as ok wants it.
func (p *Terminal) Await(what string, ok func(screen string) bool) {
	p.t.Helper()
	for deadline := time.Now().Add(patience); !ok(p.Screen()); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			p.t.Fatalf("waited in vain: %s; on the screen:\n%s\nwritten:\n%q", what, p.Screen(), tail(p.Raw()))
		}
	}
}

func tail(s string) string { return s[max(0, len(s)-2000):] }

func (p *Terminal) clear() {
	p.cells = make([][]rune, p.rows)
	for i := range p.cells {
		p.cells[i] = []rune(strings.Repeat(" ", p.columns))
	}
	p.x, p.y = 0, 0
}

// digest shows what has come; a sequence of which only a part has come waits.
func (p *Terminal) digest() {
	for len(p.part) > 0 {
		n := 0
		if p.part[0] == 0x1b {
			n = p.escape()
		} else if utf8.FullRune(p.part) {
			var r rune
			r, n = utf8.DecodeRune(p.part)
			p.put(r)
		}
		if n == 0 {
			return
		}
		p.part = p.part[n:]
	}
}

func (p *Terminal) put(r rune) {
	switch r {
	case '\r':
		p.x = 0
	case '\n':
		if p.y++; p.y >= p.rows {
			p.cells = append(p.cells[1:], []rune(strings.Repeat(" ", p.columns)))
			p.y = p.rows - 1
		}
	case '\b':
		p.x = max(0, p.x-1)
	default:
		if r < 0x20 || p.y >= len(p.cells) {
			return
		}
		if p.x < p.columns {
			p.cells[p.y][p.x] = r
		}
		p.x++
	}
}

// escape does what a control sequence says (ECMA-48; private modes of xterm) and gives its length; 0 when it isn't
// complete.
func (p *Terminal) escape() int {
	if len(p.part) < 2 {
		return 0
	}
	if p.part[1] != '[' {
		return 2
	}
	n := 2
	for n < len(p.part) && (p.part[n] < 0x40 || p.part[n] > 0x7e) {
		n++
	}
	if n == len(p.part) {
		return 0
	}
	switch seq := string(p.part[2 : n+1]); seq {
	case "?1049h", "?1049l":
		p.alternate = seq == "?1049h"
		p.clear()
	case "?25l", "?25h":
		p.hidden = seq == "?25l"
	case "H":
		p.x, p.y = 0, 0
	case "2J":
		x, y := p.x, p.y
		p.clear()
		p.x, p.y = x, y
	case "3J": // what has scrolled away, which nobody sees here
	case "K":
		p.wipe(p.y, p.x)
	case "J":
		p.wipe(p.y, p.x)
		for y := p.y + 1; y < p.rows; y++ {
			p.wipe(y, 0)
		}
	default:
		if !strings.HasSuffix(seq, "m") && !strings.HasPrefix(seq, "?") {
			p.t.Errorf("a sequence that the screen does not know: %s", fmt.Sprintf("%q", seq))
		}
	}
	return n + 1
}

func (p *Terminal) wipe(y, from int) {
	if y >= len(p.cells) {
		return
	}
	for x := from; x < p.columns; x++ {
		p.cells[y][x] = ' '
	}
}
