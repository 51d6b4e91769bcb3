package access

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/platform/audit/export"
	"heddle/internal/spec/printable"
)

func newAuditVerify(d cli.Deps, t *cli.FleetTarget) *cobra.Command {
	o := &cli.Output{}
	var head string
	var files []string
	c := &cobra.Command{
		Use: "verify", Short: "Check that the audit logs are as they were written",
		Long: "Check at every controller that its audit log is as it was written: each line has a hash of itself and " +
			"of the line before, so that a line that was changed, removed or put in does not fit. Who can write the " +
			"files can also compute the hashes anew, or cut off the end: note HEAD somewhere else from time to time, " +
			"and give it with --head later. The exit status is 1 where something does not fit.\n\n" +
			"With --file no controller is asked: the files are checked, which are a copy of a log, or what was " +
			"exported of logs (--audit-export of heddle-controller), also in the files of a syslog server. A part of " +
			"an export may begin anywhere; what is before is not checked then.",
		Example: "  heddle audit verify\n  heddle audit verify -o json | jq -r '.chains[].head' >> " +
			"/mnt/elsewhere/heads\n" +
			"  heddle audit verify --head 5f1d…\n  heddle audit verify --file /backup/audit",
		Args: cli.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			if head != "" && !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(head) {
				return cli.Usagef("--head: a hash is 64 hexadecimal digits, as HEAD in -o json")
			}
			if len(files) > 0 {
				out, err := verifyFiles(files, head)
				if err != nil {
					return err
				}
				return errors.Join(o.Print(d, out, func(w io.Writer) error { return printAuditCheck(w, out) }),
					auditFault(out, head))
			}
			out, err := cli.AskFleet(c, t, 0, func(ctx context.Context, f *api.Fleet) (*api.AuditCheck, error) {
				return f.VerifyAudit(ctx, head)
			})
			if err != nil {
				return err
			}
			return errors.Join(o.Print(d, out, func(w io.Writer) error { return printAuditCheck(w, out) }),
				auditFault(out, head))
		},
	}
	c.Flags().StringArrayVar(&files, "file", nil, "check this `file`, or the files *.jsonl in this directory\n"+
		"(repeatable)")
	c.Flags().StringVar(&head, "head", "", "the hash of a line, as it was shown earlier")
	o.Flag(c)
	return c
}

// verifyFiles checks files without a controller.
func verifyFiles(names []string, head string) (*api.AuditCheck, error) {
	var paths []string
	for _, name := range names {
		if fi, err := os.Stat(name); err != nil {
			return nil, &cli.UsageError{Err: err}
		} else if !fi.IsDir() {
			paths = append(paths, name)
			continue
		}
		inside, err := filepath.Glob(filepath.Join(name, "*.jsonl"))
		if err != nil || len(inside) == 0 {
			return nil, cli.Usagef("--file %s: there is no file *.jsonl in it", name)
		}
		paths = append(paths, inside...)
	}
	check := export.NewCheck(head)
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		if err := errors.Join(check.File(path, f), f.Close()); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	out := &api.AuditCheck{}
	for _, k := range check.Chains() {
		out.Chains = append(out.Chains, api.AuditChain{Controller: k.Controller, Series: k.Series, Lines: k.Lines,
			Unchained: k.Unchained, Head: k.Head, Number: k.Number, Known: k.Known, Faults: k.Faults})
	}
	if check.Strange > 0 || len(out.Chains) == 0 {
		return out, fmt.Errorf("%s of these files are no lines of an audit log: give files of "+
			"/var/lib/heddle-controller/audit, or what --audit-export wrote", cli.HowMany(check.Strange, "line"))
	}
	return out, nil
}

func printAuditCheck(w io.Writer, out *api.AuditCheck) error {
	head := []string{"CONTROLLER", "LOG", "LINES", "FAULTS", "LAST", "HEAD"}
	tab := &cli.Table{Head: head, Keep: cli.Columns(head, "LOG", "LINES", "FAULTS"), Right: cli.Columns(head, "LINES",
		"FAULTS"),
		Names: cli.Columns(head, "CONTROLLER")}
	for _, c := range out.Chains {
		tab.Add(cli.Dash(printable.Text(c.Controller)), c.Series, strconv.Itoa(c.Lines), strconv.Itoa(len(c.Faults)),
			strconv.FormatInt(c.Number, 10), cli.Dash(c.Head))
	}
	return tab.Write(w)
}

// auditFault says what does not fit; nil where all does.
func auditFault(out *api.AuditCheck, head string) error {
	var errs []error
	known := head == ""
	for _, c := range out.Chains {
		known = known || c.Known
		for _, f := range c.Faults {
			where := "log " + printable.Text(c.Series)
			if c.Controller != "" {
				where = "controller " + printable.Text(c.Controller)
			}
			errs = append(errs, fmt.Errorf("%s: %s", where, printable.Text(f)))
		}
	}
	for _, name := range out.Unreachable {
		errs = append(errs, fmt.Errorf("controller %s does not answer: its log was not checked", printable.Text(name)))
	}
	if !known {
		errs = append(errs, errors.New("no log has a line with the hash of --head: it was written anew, or cut, or "+
			"the "+
			"line has been removed for age"))
	}
	return errors.Join(errs...)
}
