package top

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"
)

// Control sequences for the terminal (ECMA-48, and xterm's private modes): an alternate screen without a cursor, and
// back.
const (
	ownScreen = "\x1b[?1049h\x1b[?25l\x1b[2J"
	back      = "\x1b[0m\x1b[?25h\x1b[?1049l"
	home      = "\x1b[H"
	wipeLine  = "\x1b[K"
	wipeBelow = "\x1b[J"
	inverse   = "\x1b[7m"
	yellow    = "\x1b[33m"
	plain     = "\x1b[0m"
)

// terminal is taken by enter and restored by leave.
type terminal struct {
	in, out *os.File
	colour  bool
	was     *term.State // before enter
	taken   bool
	// stale: the content of the screen is unknown.
	stale bool
}

func openTerminal(in, out *os.File, colour bool) (*terminal, error) {
	was, err := term.GetState(int(in.Fd()))
	if err != nil {
		return nil, fmt.Errorf("standard input is no terminal: %w", err)
	}
	t := &terminal{in: in, out: out, colour: colour, was: was}
	return t, t.enter()
}

// enter takes the terminal, also again after something else has used it.
func (t *terminal) enter() error {
	if _, err := term.MakeRaw(int(t.in.Fd())); err != nil {
		return fmt.Errorf("take the terminal: %w", err)
	}
	t.taken, t.stale = true, true
	_, err := t.out.WriteString(ownScreen)
	return err
}

// leave restores the terminal to its state before the first enter.
func (t *terminal) leave() error {
	if !t.taken {
		return nil
	}
	t.taken = false
	_, _ = t.out.WriteString(back) // a terminal that is gone needs no restoring
	if err := term.Restore(int(t.in.Fd()), t.was); err != nil {
		return fmt.Errorf("give the terminal back: %w", err)
	}
	return nil
}

// draw shows lines, in one write.
func (t *terminal) draw(lines func(width, height int) []Line) error {
	width, height, err := term.GetSize(int(t.out.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		width, height = 80, 24
	}
	var b strings.Builder
	b.WriteString(home)
	if t.stale {
		b.WriteString(wipeBelow)
		t.stale = false
	}
	for i, l := range lines(width, height) {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(t.style(l) + wipeLine)
	}
	b.WriteString(wipeBelow)
	_, err = t.out.WriteString(b.String())
	return err
}

func (t *terminal) style(l Line) string {
	switch {
	case l.Head:
		return inverse + l.Text + plain
	case l.Loud && t.colour:
		return yellow + l.Text + plain
	}
	return l.Text
}
