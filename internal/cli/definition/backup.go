package definition

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/controller/backup"
	"heddle/internal/host/interrupt"
	"heddle/internal/host/ownfile"
)

func NewBackup(d cli.Deps) *cobra.Command {
	t := &cli.FleetTarget{}
	c := cli.Group("backup", "Save, compare and bring back what the controllers define",
		"  heddle backup export heddle-backup.yaml\n  heddle backup diff heddle-backup.yaml\n"+
			"  heddle backup import heddle-backup.yaml --dry-run")
	c.Long = "A backup is one readable file: the switches with their port groups, the templates and hosts with their " +
		"devices, host ports and addresses from pools, and the static ports with their numbers and adapters. Tokens, " +
		"roles, certificates, keys and the audit log are not in it: hosts and people join again. A snapshot " +
		"(heddle-controller snapshot) has all of that, and brings back a whole cluster."
	t.Flag(d, c, cli.DefaultController)
	c.AddCommand(newBackupExport(d, t), newBackupImport(d, t), newBackupDiff(d, t))
	return c
}

// backupTime is how long calls with a backup may take: one of the largest definition is read, checked and written.
const backupTime = 2 * time.Minute

// SavedBackup says what was saved.
type SavedBackup struct {
	File        string `json:"file"`
	Bytes       int    `json:"bytes"`
	Revision    int64  `json:"revision"`
	Switches    int    `json:"switches"`
	PortGroups  int    `json:"portGroups"`
	StaticPorts int    `json:"staticPorts"`
	Bindings    int    `json:"bindings"`
}

func newBackupExport(d cli.Deps, t *cli.FleetTarget) *cobra.Command {
	o := &cli.Output{}
	var of string
	c := &cobra.Command{
		Use: "export FILE", Short: "Save what the controllers define in a file",
		Long: "Save what the controllers define, as of one revision, in a file that only its owner may read; - is " +
			"standard output. The file is there whole or not at all: what was there before stays when the command " +
			"fails or is interrupted.",
		Example: "  heddle backup export heddle-backup.yaml\n  heddle backup export dvs.yaml --switch dvs\n" +
			"  heddle backup export - | gzip > heddle-backup.yaml.gz",
		Args: cli.Exactly("FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			b, err := cli.AskFleet(c, t, backupTime, func(ctx context.Context, f *api.Fleet) (*api.Backup, error) {
				return f.Backup(ctx, of)
			})
			if err != nil {
				return err
			}
			if _, err := backup.Decode("the backup", []byte(b.Content)); err != nil {
				return fmt.Errorf("what the controller sent is no backup that could be imported: %w", err)
			}
			if args[0] == "-" {
				_, err := io.WriteString(d.Raw, b.Content)
				return err
			}
			if err := ownfile.Replace(args[0], []byte(b.Content)); err != nil {
				return err
			}
			saved := SavedBackup{args[0], len(b.Content), b.Revision, b.Switches, b.PortGroups, b.StaticPorts,
				b.Bindings}
			return o.Print(d, saved, func(w io.Writer) error { return printSaved(w, &saved) })
		},
	}
	c.Flags().StringVar(&of, "switch", "", "only this switch, with what templates and hosts say of it")
	o.Flag(c)
	return c
}

func printSaved(w io.Writer, s *SavedBackup) error {
	_, err := fmt.Fprintf(w, "%s has revision %d: %s, %s, %s, %d of them bound\n", s.File, s.Revision,
		cli.HowMany(s.Switches, "switch"), cli.HowMany(s.PortGroups, "port group"), cli.HowMany(s.StaticPorts,
			"static port"),
		s.Bindings)
	return err
}

// readBackup reads a file of at most the size that a backup has.
func readBackup(ctx context.Context, d cli.Deps, file string) (string, error) {
	b, err := interrupt.Do(ctx, func() ([]byte, error) {
		if file == "-" {
			return io.ReadAll(io.LimitReader(interrupt.Reader(ctx, d.Stdin), backup.MostBytes+1))
		}
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return io.ReadAll(io.LimitReader(f, backup.MostBytes+1))
	})
	if errors.Is(err, fs.ErrNotExist) {
		return "", cli.Usagef("there is no file %s", file)
	}
	if err != nil {
		return "", err
	}
	if _, err := backup.Decode(cli.FileName(file), b); err != nil {
		return "", &cli.UsageError{Err: err}
	}
	return string(b), nil
}

func newBackupImport(d cli.Deps, t *cli.FleetTarget) *cobra.Command {
	o := &cli.Output{}
	q := api.BackupImport{}
	c := &cobra.Command{
		Use: "import FILE", Short: "Bring a backup back (all or nothing)",
		Long: "Bring a backup back (all or nothing), and wait until the hosts that are connected have it active.\n\n" +
			"Where the cluster defines nothing yet, all comes as it was: with the identifiers of objects, the " +
			"numbers of static ports and their adapters, and the addresses that hosts had from pools. Hosts join " +
			"again, by the same names. " +
			"Elsewhere what comes gets new identifiers and numbers, and what is there already under " +
			"its name is a collision, unless it is equal; --replace restores it in place, and of a backup of " +
			"everything lets go what the backup lacks.\n\n" +
			"--dry-run says what would come, go, change and collide; with collisions the exit status is 1.",
		Example: "  heddle backup import heddle-backup.yaml --dry-run\n" +
			"  heddle backup import dvs.yaml --replace -m 'as it was on Friday'\n" +
			"  heddle backup import dvs.yaml --as dvs-test",
		Args: cli.Exactly("FILE"),
		RunE: func(c *cobra.Command, args []string) (err error) {
			if err := o.Check(); err != nil {
				return err
			}
			if q.Identifiers != "" && q.Identifiers != "keep" && q.Identifiers != "new" {
				return cli.Usagef("--identifiers %s: \"keep\", or \"new\"", q.Identifiers)
			}
			if q.Content, err = readBackup(c.Context(), d, args[0]); err != nil {
				return err
			}
			q.File = cli.FileName(args[0])
			out, err := cli.AskFleet(c, t, backupTime+q.Wait, func(ctx context.Context, f *api.Fleet) (
				*api.ImportedBackup, error) {
				defer showHosts(d, ctx, f)()
				return f.ImportBackup(ctx, q)
			})
			if err != nil {
				return err
			}
			if err := o.Print(d, out, func(w io.Writer) error {
				return printImported(d, w, out, q.DryRun)
			}); err != nil {
				return err
			}
			if n := len(out.Collisions); n > 0 {
				return fmt.Errorf("%s: nothing would be imported", cli.HowMany(n, "collision"))
			}
			if n := len(out.Defined.Waiting); n > 0 && q.Wait > 0 {
				return fmt.Errorf("%d of %d hosts do not have the definition active yet", n, len(out.Defined.Hosts))
			}
			return nil
		},
	}
	f := c.Flags()
	f.BoolVar(&q.DryRun, "dry-run", false, "only print what would come, go and collide")
	f.StringVar(&q.Identifiers, "identifiers", "", "keep: those of the backup; new: others (default: keep where\n"+
		"nothing is defined yet, else new)")
	f.BoolVar(&q.Replace, "replace", false, "restore what has the same name in place; of a backup of\neverything, "+
		"what it lacks goes")
	f.StringVar(&q.As, "as", "", "another name for the switch of a backup of one switch")
	f.BoolVar(&q.Force, "force", false, "remove port groups that are in use")
	f.BoolVar(&q.AllowUnprotected, "allow-unprotected", false, "also where hosts do not know a security "+
		"field,\nand their ports go without it")
	f.DurationVar(&q.Wait, "wait", defaultWait, "how long to wait for the hosts; 0 for not at all")
	f.StringVarP(&q.Message, "message", "m", "", "why, for the history")
	o.Flag(c)
	return c
}

func printImported(d cli.Deps, w io.Writer, out *api.ImportedBackup, dry bool) error {
	if len(out.Collisions) > 0 {
		for _, line := range out.Collisions {
			if _, err := fmt.Fprintln(w, "collides: "+line); err != nil {
				return err
			}
		}
		return nil
	}
	which := "new identifiers"
	if out.Identifiers == "keep" {
		which = fmt.Sprintf("the identifiers of the backup, %s with their numbers, %d of them bound, %d addresses",
			cli.HowMany(out.StaticPorts, "static port"), out.Bindings, out.Addresses)
	}
	if _, err := fmt.Fprintln(w, "with "+which); err != nil {
		return err
	}
	for _, note := range out.Notes {
		if _, err := fmt.Fprintln(w, "note: "+note); err != nil {
			return err
		}
	}
	return printDefined(d, w, &out.Defined, dry)
}

func newBackupDiff(d cli.Deps, t *cli.FleetTarget) *cobra.Command {
	o := &cli.Output{}
	c := &cobra.Command{
		Use: "diff FILE", Short: "Show what is different now from a backup",
		Long: "Show what is different now from a backup, from the backup to now: objects of the definition field by " +
			"field, and whose static ports are. The exit status is 1 where anything is different, so that a " +
			"script can " +
			"look for drift.",
		Example: "  heddle backup diff heddle-backup.yaml\n  heddle backup diff dvs.yaml -o json",
		Args:    cli.Exactly("FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			content, err := readBackup(c.Context(), d, args[0])
			if err != nil {
				return err
			}
			out, err := cli.AskFleet(c, t, backupTime, func(ctx context.Context, f *api.Fleet) (
				*api.BackupDiff, error) {
				return f.CompareBackup(ctx, cli.FileName(args[0]), content)
			})
			if err != nil {
				return err
			}
			lines := backupDiffLines(out)
			if err := o.Print(d, out, func(w io.Writer) error {
				if len(lines) == 0 {
					lines = []string{fmt.Sprintf("nothing is different from the backup of revision %d", out.From)}
				}
				_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
				return err
			}); err != nil {
				return err
			}
			if len(out.Objects)+len(out.Ports)+len(out.Notes) > 0 {
				return &cli.SilentError{Status: cli.ExitFailure}
			}
			return nil
		},
	}
	o.Flag(c)
	return c
}

func backupDiffLines(out *api.BackupDiff) []string {
	lines := objectLines(out.Objects)
	for _, p := range out.Ports {
		line := fmt.Sprintf("static port %s of %s %s", p.Port, p.PortGroup, p.Change)
		switch p.Change {
		case "bound":
			line += " to " + p.New
		case "released":
			line += " by " + p.Old
		case "changed":
			line += ": " + p.Old + " → " + p.New
		}
		lines = append(lines, line)
	}
	return append(lines, out.Notes...)
}
