package definition

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/host/interrupt"
	"heddle/internal/spec"
	"heddle/internal/vsphere"
)

func NewImport(d cli.Deps) *cobra.Command {
	c := cli.Group("import", "Take over switches from another product",
		"  heddle import vsphere vcenter.json\n  heddle import vsphere vcenter.json -o yaml > fleet.yaml")
	t := &cli.FleetTarget{}
	t.Flag(d, c, cli.DefaultController)
	c.AddCommand(newImportVsphere(d, t))
	return c
}

// importing are the flags of an import.
type importing struct {
	options vsphere.Options
	devices []string
	apply   bool
	replace bool
	vcenter vcenter
}

func newImportVsphere(d cli.Deps, t *cli.FleetTarget) *cobra.Command {
	o, q, way, i := &cli.Output{}, api.Define{}, &changeWay{}, &importing{}
	c := &cobra.Command{
		Use: "vsphere [FILE...]", Short: "Make a definition of the distributed switches of vSphere",
		Long: "Make a definition of the distributed switches of vSphere: their port groups, policies, uplinks and " +
			"LAGs, and which hosts have which uplinks. The files are dumps of the managed objects as govc writes " +
			"them (object.collect -json, dvs.portgroup.info -json); - is standard input. --vcenter reads a running " +
			"vCenter instead, and changes nothing there. The password comes from --password-file, else from " +
			"HEDDLE_VCENTER_PASSWORD, else from a prompt.\n\n" +
			"It prints what was read, and each setting that has no counterpart or means something else, with what to " +
			"do. -o yaml prints the definition instead, and these notes on standard error.\n\n" +
			"Nothing is changed without --apply, which adds the result to the definition of the controllers. What is " +
			"there already under its name is a collision, unless it is equal; --replace puts the imported one in its " +
			"place. With --apply --dry-run the controllers say what would change.",
		Example: "  heddle import vsphere vcenter.json\n" +
			"  heddle import vsphere vc.json --device vmnic0=eno1 -o yaml >dvs.yaml\n" +
			"  heddle import vsphere --vcenter vcenter.example --user reader@vsphere.local\n" +
			"  heddle import vsphere vcenter.json --apply -m 'from vCenter'",
		Args: func(_ *cobra.Command, args []string) error { return i.vcenter.check(args) },
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			r, err := i.read(c.Context(), d, args)
			if err != nil {
				return err
			}
			if !i.apply {
				return printImport(d, o, r)
			}
			if q.Together, err = way.together(c); err != nil {
				return err
			}
			if err := printNotes(d.Stderr, d.TextWidth(), r); err != nil {
				return err
			}
			return i.define(c, d, t, o, q, r)
		},
	}
	f := c.Flags()
	f.StringArrayVar(&i.options.Switches, "switch", nil, "only this switch, by its name in vSphere (repeatable)")
	f.StringArrayVar(&i.devices, "device", nil, "the Linux name of a card, such as vmnic0=eno1 (repeatable)")
	f.BoolVar(&i.options.HostPorts, "host-ports", false, "also VMkernel adapters, with their addresses")
	f.BoolVar(&i.apply, "apply", false, "add the result to the definition of the controllers")
	f.BoolVar(&i.replace, "replace", false, "with --apply: replace what has the same name")
	i.vcenter.flags(f)
	defineFlags(c, &q)
	way.flags(c)
	o.Flag(c)
	return c
}

// read reads the dumps and translates them.
func (i *importing) read(ctx context.Context, d cli.Deps, files []string) (*vsphere.Result, error) {
	i.options.Devices = map[string]string{}
	for _, pair := range i.devices {
		from, to, ok := strings.Cut(pair, "=")
		if !ok || from == "" || to == "" {
			return nil, cli.Usagef("--device %s: write it as vmnic0=eno1", pair)
		}
		i.options.Devices[from] = to
	}
	r, err := interrupt.Do(ctx, func() (*vsphere.Result, error) {
		inv := &vsphere.Inventory{}
		if i.vcenter.url != "" {
			if err := i.vcenter.read(ctx, d, inv); err != nil {
				return nil, err
			}
		}
		for _, file := range files {
			if err := readDump(ctx, d, inv, file); err != nil {
				return nil, err
			}
		}
		return inv.Translate(i.options)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &cli.UsageError{Err: err}
	}
	return r, err
}

func readDump(ctx context.Context, d cli.Deps, inv *vsphere.Inventory, file string) error {
	if file == "-" {
		return inv.Read(cli.FileName(file), interrupt.Reader(ctx, d.Stdin))
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	return inv.Read(file, f)
}

// Imported is what an import found, for scripts.
type Imported struct {
	*vsphere.Result
}

func printImport(d cli.Deps, o *cli.Output, r *vsphere.Result) error {
	if o.Format != "yaml" {
		return o.Print(d, Imported{r}, func(w io.Writer) error {
			if err := printNotes(w, d.TextWidth(), r); err != nil {
				return err
			}
			_, err := fmt.Fprintln(w, "nothing was changed: -o yaml prints the definition, --apply makes the change")
			return err
		})
	}
	text, err := spec.FormatDefinition(r.Definition)
	if err != nil {
		return err
	}
	if err := printNotes(d.Stderr, d.TextWidth(), r); err != nil {
		return err
	}
	if _, err = d.Stdout.Write(text); err != nil {
		return err
	}
	if why := spec.TooLargeDefinition(text); why != "" {
		return fmt.Errorf("controllers would not take it: %s; --switch imports some of them", why)
	}
	return nil
}

// printNotes writes what was read, and the notes; equal ones of several objects once, with the objects' names.
func printNotes(w io.Writer, width int, r *vsphere.Result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "read: %s, %s, %s, %s, %s\n", cli.HowMany(r.Switches, "switch"), cli.HowMany(r.PortGroups,
		"port group"),
		cli.HowMany(r.LAGs, "LAG"), cli.HowMany(r.Hosts, "host"), cli.HowMany(r.HostPorts, "host port"))
	type key struct {
		setting, value, advice string
		outcome                vsphere.Outcome
	}
	var order []key
	objects := map[key][]string{}
	for _, n := range r.Notes {
		k := key{n.Setting, n.Value, n.Advice, n.Outcome}
		if objects[k] == nil {
			order = append(order, k)
		}
		objects[k] = append(objects[k], n.Object)
	}
	for _, outcome := range []vsphere.Outcome{vsphere.Absent, vsphere.Changed, vsphere.Renamed} {
		for _, k := range order {
			if k.outcome != outcome {
				continue
			}
			setting := k.setting
			if k.value != "" {
				setting += " " + k.value
			}
			fmt.Fprintf(&b, "%s: %s: %s\n  %s\n", k.outcome, someObjects(objects[k]), setting,
				strings.Join(cli.Wrap(k.advice, width-2), "\n  "))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// someObjects are the first three names, and how many more there are.
func someObjects(all []string) string {
	if len(all) <= 3 {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:3], ", "), len(all)-3)
}

// define adds what was imported to the controllers' definition.
func (i *importing) define(c *cobra.Command, d cli.Deps, t *cli.FleetTarget, o *cli.Output, q api.Define,
	r *vsphere.Result) error {
	now, err := cli.AskFleet(c, t, readTime, func(ctx context.Context, f *api.Fleet) (*api.Definition, error) {
		return f.Definition(ctx)
	})
	if err != nil {
		return err
	}
	def, err := spec.ParseDefinition("the definition", []byte(now.Content))
	if err != nil {
		return fmt.Errorf("the definition of the controllers can't be read: %w", err)
	}
	if collisions := vsphere.Merge(def, r.Definition, i.replace); len(collisions) > 0 {
		slices.Sort(collisions)
		return fmt.Errorf("nothing was imported, because this is there already and different (--replace takes the "+
			"imported one): %s", strings.Join(collisions, "; "))
	}
	text, err := spec.FormatDefinition(def)
	if err != nil {
		return err
	}
	if why := spec.TooLargeDefinition(text); why != "" {
		return fmt.Errorf("with what is imported controllers would not take it: %s; --switch imports some of them", why)
	}
	q.File, q.Content = "<import>", string(text)
	if !c.Flags().Changed("revision") {
		q.Revision = now.Revision
	}
	return define(c, d, t, o, q, false)
}
