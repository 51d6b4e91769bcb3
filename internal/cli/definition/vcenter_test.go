package definition

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heddle/internal/cli"
	"heddle/internal/vsphere"
)

// The program that reads a vCenter stands here as a script: it is told no secret, what it writes is the dump, what it
// says wrong is passed on, and it ends with the command.
func TestVcenter_ReadsWhatTheProgramWrites(t *testing.T) {
	lab, err := filepath.Abs("../../vsphere/testdata/lab.json")
	if err != nil {
		t.Fatal(err)
	}
	v := &vcenter{url: "vcenter.example", user: "reader", passwordFile: "secret", timeout: time.Minute}
	for name, c := range map[string]struct{ script, want string }{
		"a dump": {`[ "$*" = "--vcenter=vcenter.example --user=reader --password-file=secret --ca= --thumbprint= ` +
			`--timeout=1m0s" ] || exit 1; cat ` + lab, ""},
		"a fault":            {"echo no such host >&2; exit 1", "the vCenter was not read: see above"},
		"a fault midway":     {"printf '{\"self\":'; exit 1", "the vCenter was not read: see above"},
		"too little said":    {"exit 2", "the vCenter was not read: see above"},
		"something else":     {"echo hello", "this is no dump in JSON"},
		"less than was said": {"printf '{\"self\":'", "this is no dump in JSON"},
	} {
		program := filepath.Join(t.TempDir(), "program")
		if err := os.WriteFile(program, []byte("#!/bin/sh\n"+c.script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		var errs bytes.Buffer
		var inv vsphere.Inventory
		err := v.readBy(t.Context(), cli.Deps{Stderr: &errs}, &inv, program)
		switch {
		case c.want != "":
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v", name, err)
			}
		case err != nil:
			t.Errorf("%s: %v (%s)", name, err, &errs)
		default:
			if r, err := inv.Translate(vsphere.Options{}); err != nil || r.Switches != 1 || r.PortGroups != 3 {
				t.Errorf("%s: %+v, %v", name, r, err)
			}
		}
		if name == "a fault" && errs.String() != "no such host\n" {
			t.Errorf("it says %q", &errs)
		}
	}
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\nexec yes '{}'\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if err := v.readBy(ctx, cli.Deps{Stderr: &bytes.Buffer{}}, &vsphere.Inventory{}, program); !errors.Is(err,
		context.Canceled) {
		t.Errorf("ended by the user: %v", err)
	}
}
