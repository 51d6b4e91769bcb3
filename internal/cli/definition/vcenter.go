package definition

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"heddle/internal/cli"
	"heddle/internal/vsphere"
)

// vcenterProgram reads vCenters. It stands beside heddle, which would grow by the types of the vSphere API otherwise.
const vcenterProgram = "heddle-vsphere"

// vcenter is a running vCenter that is read.
type vcenter struct {
	url, user, passwordFile, ca, thumbprint string
	timeout                                 time.Duration
}

func (v *vcenter) flags(f *pflag.FlagSet) {
	f.StringVar(&v.url, "vcenter", "", "read this running vCenter: its host, or https URL")
	f.StringVar(&v.user, "user", "", "with --vcenter: name of the user (default HEDDLE_VCENTER_USER)")
	f.StringVar(&v.passwordFile, "password-file", "", "with --vcenter: file of the password; - is standard input")
	f.StringVar(&v.ca, "ca", "", "with --vcenter: file of the authorities of its certificate, in PEM")
	f.StringVar(&v.thumbprint, "thumbprint", "", "with --vcenter: SHA-256 of its certificate")
	f.DurationVar(&v.timeout, "timeout", 2*time.Minute, "with --vcenter: how long one answer may take")
}

// check refuses what can't be read together.
func (v *vcenter) check(files []string) error {
	switch {
	case v.url == "" && len(files) == 0:
		return cli.Usagef("say what to read: heddle import vsphere FILE..., or --vcenter URL")
	case v.url != "" && len(files) > 0:
		return cli.Usagef("read either files or a vCenter")
	case v.url == "" && v.user+v.passwordFile+v.ca+v.thumbprint != "":
		return cli.Usagef("--user, --password-file, --ca and --thumbprint go with --vcenter URL")
	}
	return nil
}

// read adds what the vCenter has. The program asks for the password, and says by itself what is wrong.
func (v *vcenter) read(ctx context.Context, d cli.Deps, inv *vsphere.Inventory) error {
	own, err := os.Executable()
	if err != nil {
		return err
	}
	return v.readBy(ctx, d, inv, filepath.Join(filepath.Dir(own), vcenterProgram))
}

func (v *vcenter) readBy(ctx context.Context, d cli.Deps, inv *vsphere.Inventory, program string) error {
	// The arguments stand behind flags, so that none is taken for another flag. None is a secret.
	c := exec.CommandContext(ctx, program, "--vcenter="+v.url, "--user="+v.user, "--password-file="+v.passwordFile,
		"--ca="+v.ca, "--thumbprint="+v.thumbprint, "--timeout="+v.timeout.String())
	c.Stdin, c.Stderr = d.Stdin, d.Stderr
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.WaitDelay = 10 * time.Second
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("%s is not there: the package heddle-controller has it. Or dump the objects, and "+
				"import the file", program)
		}
		return err
	}
	wrong := inv.Read("what vCenter sends", out)
	if wrong != nil {
		_ = c.Process.Signal(syscall.SIGTERM)
		_, _ = io.Copy(io.Discard, out)
	}
	var exit *exec.ExitError
	switch err := c.Wait(); {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &exit) && exit.ExitCode() == cli.ExitUsage:
		return cli.Usagef("the vCenter was not read: see above")
	case err != nil && (wrong == nil || errors.Is(wrong, io.ErrUnexpectedEOF)):
		return errors.New("the vCenter was not read: see above")
	}
	return wrong
}
