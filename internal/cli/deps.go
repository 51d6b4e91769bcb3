package cli

import (
	"crypto/rand"
	"io"
	"os"

	"golang.org/x/term"

	"heddle/internal/api/waitline"
	"heddle/internal/spec/printable"
)

// Exit statuses of the program.
const (
	ExitOK      = 0
	ExitFailure = 1 // something went wrong while running
	ExitUsage   = 2 // the command line or the configuration is wrong; nothing was changed
	// Exit statuses of an agent under a service manager, which should not start it again: a command stopped it, or the
	// configuration is wrong. A crash of the Go runtime has status 2, which is why the latter has another one here
	// (EX_CONFIG of sysexits.h).
	ExitStopped = 3
	ExitConfig  = 78
	// "heddle down" was refused, or would be: it ends somebody's connection to this host.
	ExitConnected = 4
)

// Deps is what commands get from outside, so that tests can replace it.
type Deps struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Getenv looks up an environment variable.
	Getenv func(string) string
	// Colour: Stdout is a terminal on which colours may be used.
	Colour bool
	// Asking: Stdin and Stderr are a terminal, where a person can be asked.
	Asking bool
	// Watched: Stderr is a terminal, on which a line may be overwritten.
	Watched bool
	// Width is the width of the terminal on Stdout, in characters; 0 if Stdout is not a terminal.
	Width int

	// Release is the version of the package that the program is part of; empty in other builds.
	Release string

	// Raw is Stdout for output that is not text: binary files, full screens, the programs that a command runs. rawErr
	// is Stderr for the latter.
	Raw, RawErr io.Writer
	// Waits shows who is waited for; nil where nobody watches.
	Waits *waitline.Line
	// Mark distinguishes the program's own colours from control sequences in names from outside.
	Mark string
}

// Printing returns Deps whose Stdout removes control and direction characters that come from outside. On a terminal,
// output takes the place of the line that says who is waited for.
func (d Deps) Printing() Deps {
	d.Raw, d.RawErr, d.Mark = d.Stdout, d.Stderr, rand.Text()
	out := d.Raw
	if d.Watched {
		d.Waits = waitline.New(d.RawErr)
		out, d.Stderr = d.Waits.Before(out), d.Waits.Before(d.RawErr)
	}
	d.Stdout = screen{printable.NewWriter(out, d.Mark), d.Width}
	return d
}

// FromOS returns the process's own streams and environment.
func FromOS() Deps {
	return Deps{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Getenv:  os.Getenv,
		Colour:  IsTerminal(os.Stdout) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb",
		Asking:  IsTerminal(os.Stdin) && IsTerminal(os.Stderr),
		Watched: IsTerminal(os.Stderr) && os.Getenv("TERM") != "dumb",
		Width:   terminalWidth(os.Stdout),
	}
}

// UsageError is a fault of the command line or of a configuration: the program exits with ExitUsage.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }

func (e *UsageError) Unwrap() error { return e.Err }

// terminalWidth returns the width of the terminal f in characters, or 0 if f is not a terminal.
func terminalWidth(f *os.File) int {
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}
