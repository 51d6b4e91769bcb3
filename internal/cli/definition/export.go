package definition

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/spec"
	"heddle/internal/spec/yamltext"
)

func NewExport(d cli.Deps) *cobra.Command {
	t := &cli.FleetTarget{}
	c := cli.Group("export", "Write the definition in the form of another tool",
		"  heddle export ansible > group_vars/all/heddle.yaml\n  heddle export terraform > fleet.yaml")
	c.Long = "Write the definition in a form that another tool can work with: switches, port groups, templates, " +
		"hosts and settings of static ports by their names in mappings, sorted, so that the same definition always " +
		"is the same file. \"heddle definition apply\" reads this form as well."
	t.Flag(d, c, cli.DefaultController)
	c.AddCommand(newExportAnsible(d, t), newExportTerraform(d, t))
	return c
}

// exporting are the flags of an export.
type exporting struct {
	o        cli.Output
	file     string
	revision int64
}

func (e *exporting) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVarP(&e.file, "file", "f", "", "export this file instead of what the controllers define; - for\nstandard "+
		"input")
	_ = c.MarkFlagFilename("file", "yaml", "yml")
	f.Int64Var(&e.revision, "revision", 0, "an earlier revision (heddle definition history)")
	e.o.Document = true
	e.o.Flag(c)
}

// read is the definition to export, and a line that says which it is.
func (e *exporting) read(c *cobra.Command, d cli.Deps, t *cli.FleetTarget) (def *spec.NamedDefinition, of string,
	err error) {
	if err := e.o.Check(); err != nil {
		return nil, "", err
	}
	if e.file != "" && e.revision != 0 {
		return nil, "", cli.Usagef("give --file or --revision: a file has no revisions")
	}
	var name, text string
	if e.file != "" {
		b, err := cli.ReadFile(c.Context(), d, e.file)
		if err != nil {
			return nil, "", err
		}
		name, text = cli.FileName(e.file), string(b)
		of = "exported from " + name
	} else {
		got, err := cli.AskFleet(c, t, readTime, func(ctx context.Context, f *api.Fleet) (*api.Definition, error) {
			if e.revision != 0 {
				return f.Past(ctx, e.revision)
			}
			return f.Definition(ctx)
		})
		if err != nil {
			return nil, "", err
		}
		name, text = "the definition", got.Content
		of = fmt.Sprintf("exported from revision %d", got.Revision)
		if err := cli.PrintFleetNotes(d.Stderr, nil, got.Stale); err != nil {
			return nil, "", err
		}
	}
	parsed, err := spec.ParseDefinition(name, []byte(text))
	if err != nil {
		return nil, "", &cli.UsageError{Err: err}
	}
	return parsed.ByName(), of, nil
}

// write prints what was exported. comment is its first line as YAML, tag gives texts tags.
func (e *exporting) write(d cli.Deps, v any, comment string, tag func(string) string) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	if e.o.Format == "json" {
		_, err := fmt.Fprintf(d.Stdout, "%s\n", b)
		return err
	}
	if b, err = yamltext.Tagged(b, tag); err != nil {
		return err
	}
	_, err = io.WriteString(d.Stdout, "# "+comment+"\n"+string(b))
	return err
}

func newExportTerraform(d cli.Deps, t *cli.FleetTarget) *cobra.Command {
	e := &exporting{}
	c := &cobra.Command{
		Use: "terraform", Short: "Write the definition for Terraform's yamldecode and for_each",
		Long: "Write the definition for Terraform: yamldecode reads it, and for_each goes over its mappings, whose " +
			"keys are names. What has an order, such as uplinks, stays a list. There is no provider for Heddle: what " +
			"Terraform makes of it is applied by \"heddle definition apply\", which reads yamlencode's output.",
		Example: "  heddle export terraform > fleet.yaml\n  heddle export terraform --revision 42 -o json\n" +
			"  heddle export terraform -f fleet-by-hand.yaml > fleet.yaml",
		Args: cli.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			def, of, err := e.read(c, d, t)
			if err != nil {
				return err
			}
			return e.write(d, def, of+" by \"heddle export terraform\"", func(string) string { return "" })
		},
	}
	e.flags(c)
	return c
}

// variable is the form of a name of a variable of Ansible.
var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func newExportAnsible(d cli.Deps, t *cli.FleetTarget) *cobra.Command {
	e := &exporting{}
	name := "heddle_definition"
	c := &cobra.Command{
		Use: "ansible", Short: "Write the definition as a variable of Ansible",
		Long: "Write the definition as one variable of Ansible, for group_vars or vars_files. \"heddle definition " +
			"apply -f -\" reads what the filter to_json makes of it. Texts that Ansible would take for templates " +
			"have the tag !unsafe.",
		Example: "  heddle export ansible > group_vars/all/heddle.yaml\n" +
			"  heddle export ansible --variable network -f fleet.yaml",
		Args: cli.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if !variable.MatchString(name) {
				return cli.Usagef("--variable %s: a variable of Ansible has letters, digits and _, and begins with no "+
					"digit", name)
			}
			def, of, err := e.read(c, d, t)
			if err != nil {
				return err
			}
			if e.o.Format == "json" {
				if text, err := json.Marshal(def); err != nil || unsafe(string(text)) != "" {
					return errors.Join(err, errors.New("a text has {{, {% or {#, which Ansible takes for a template, "+
						"and JSON has no tag against that: export it as YAML"))
				}
			}
			return e.write(d, map[string]any{name: def}, of+" by \"heddle export ansible\"", unsafe)
		},
	}
	c.Flags().StringVar(&name, "variable", name, "the variable's `name`")
	e.flags(c)
	return c
}

// unsafe is the tag of a text that Ansible would take for a template.
func unsafe(text string) string {
	for _, begin := range []string{"{{", "{%", "{#"} {
		if strings.Contains(text, begin) {
			return "!unsafe"
		}
	}
	return ""
}
