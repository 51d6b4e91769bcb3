package cmd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"heddle/internal/spec/printable"
	"heddle/internal/version"
	"heddle/internal/vsphere/live"
)

// Main runs the program and returns its exit status. release is the version of its package, if any.
func Main(release string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends at once
	return run(ctx, process{os.Stdin, os.Stdout, os.Stderr, os.Getenv, release}, os.Args[1:])
}

// process is what the program has of its surroundings.
type process struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	getenv         func(string) string
	release        string // version of the package
}

// Exit statuses: the same as those of heddle.
const (
	exitFailure     = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// errUsage is a call that says too little.
type errUsage struct{ error }

func run(ctx context.Context, p process, args []string) int {
	c := command(p)
	c.SetArgs(args)
	c.SetOut(p.stdout)
	c.SetErr(p.stderr)
	err := c.ExecuteContext(ctx)
	var usage errUsage
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil:
		fmt.Fprintln(p.stderr, "heddle-vsphere: interrupted")
		return exitInterrupted
	}
	fmt.Fprintln(p.stderr, "heddle-vsphere: "+printable.Lines(err.Error()))
	if errors.As(err, &usage) {
		return exitUsage
	}
	return exitFailure
}

// New is the program's command, as its manual page shows it.
func New() *cobra.Command {
	return command(process{strings.NewReader(""), io.Discard, io.Discard, func(string) string { return "" }, ""})
}

// command reads a vCenter, and writes a dump.
func command(p process) *cobra.Command {
	var o live.Options
	var passwordFile string
	c := &cobra.Command{
		Use:   "heddle-vsphere --vcenter URL --user NAME",
		Short: "Write the distributed switches of a vCenter as a dump",
		Long: "Write the distributed switches of a vCenter, with their port groups, hosts and uplink ports, to " +
			"standard output as a dump. heddle import vsphere reads it, and calls this program for --vcenter. " +
			"It only reads.\n\n" +
			"The password comes from --password-file, else from HEDDLE_VCENTER_PASSWORD, else from a prompt on the " +
			"terminal.",
		Example:       "  heddle-vsphere --vcenter vcenter.example --user reader@vsphere.local >vcenter.json",
		Args:          cobra.NoArgs,
		Version:       version.Of(p.release).String(),
		SilenceErrors: true, SilenceUsage: true, DisableAutoGenTag: true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		RunE: func(c *cobra.Command, _ []string) error {
			if _, err := live.ParseURL(o.URL); err != nil {
				return errUsage{err}
			}
			if o.User == "" {
				o.User = p.getenv("HEDDLE_VCENTER_USER")
			}
			if o.User == "" {
				return errUsage{errors.New("say as whom: --user NAME, or HEDDLE_VCENTER_USER")}
			}
			var err error
			if o.Password, err = p.password(passwordFile, o.User); err != nil {
				return err
			}
			return p.dump(c.Context(), o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.URL, "vcenter", "", "host, or https URL, of the vCenter")
	f.StringVar(&o.User, "user", "", "name of the user (default HEDDLE_VCENTER_USER)")
	f.StringVar(&passwordFile, "password-file", "", "file of the password; - is standard input")
	f.StringVar(&o.CA, "ca", "", "file of the certificate authorities, in PEM (default the system's)")
	f.StringVar(&o.Thumbprint, "thumbprint", "", "SHA-256 of the certificate, trusted instead of an authority")
	f.DurationVar(&o.Timeout, "timeout", live.DefaultTimeout, "how long one answer may take")
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return errUsage{err} })
	return c
}

// dump writes the dump, and on a terminal how far it is.
func (p process) dump(ctx context.Context, o live.Options) error {
	lines := func() {}
	if f, ok := p.stderr.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		shown, last := false, time.Now()
		o.Progress = func(kind string, n int) {
			if time.Since(last) >= time.Second {
				fmt.Fprintf(f, "\r\x1b[Kreading vCenter: %s %d", kind, n)
				shown, last = true, time.Now()
			}
		}
		lines = func() {
			if shown {
				fmt.Fprint(f, "\r\x1b[K")
			}
		}
	}
	w := bufio.NewWriterSize(p.stdout, 1<<16)
	err := live.Dump(ctx, o, w)
	lines()
	if err != nil {
		return err
	}
	return w.Flush()
}
