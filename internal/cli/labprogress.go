package cli

import (
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"golang.org/x/term"
)

// progress is one line that is overwritten with the current step, if a person can see it.
type progress struct {
	terminal *os.File // nil: nobody watches
	shown    bool
}

func NewProgress(w io.Writer) *progress {
	f, ok := w.(*os.File)
	if !ok || !IsTerminal(f) {
		return &progress{}
	}
	return &progress{terminal: f}
}

func (p *progress) Say(what string) {
	if p.terminal == nil {
		return
	}
	// A line that wraps could not be overwritten.
	if width, _, err := term.GetSize(int(p.terminal.Fd())); err == nil && width > 1 &&
		utf8.RuneCountInString(what) >= width {
		what = string([]rune(what)[:width-1])
	}
	fmt.Fprintf(p.terminal, "%s%s", ClearLine, what)
	p.shown = true
}

// Part shows the current step and how much of the total is done.
func (p *progress) Part(done, total int, what string) {
	p.Say(fmt.Sprintf("%3d %%  %s", 100*done/max(total, 1), what))
}

func (p *progress) Clear() {
	if p.shown {
		fmt.Fprint(p.terminal, ClearLine)
	}
}
