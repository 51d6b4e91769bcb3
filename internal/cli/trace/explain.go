package trace

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"heddle/internal/cli"
	"heddle/internal/diagnose/explain"
	"heddle/internal/plan"
	"heddle/internal/spec/known"
)

// mostInFull is how many topics of one word are shown in full; if there are more, each gets one line.
const mostInFull = 3

const explainLong = `Explain a word of Heddle's outputs and of the configuration file.

A reason for which frames are dropped or copies refused, such as forged-transmit: what it means, which setting causes it,
what changes it, and where it is counted.

A field of the file, by its path, its last part or the flag that sets it, such as security.forgedTransmits: its values, its
default, where it can be set, and its name in vSphere.

A rule of "heddle advise", such as half-open: what it looks for, and how to fix what it finds.

Without a word all of them are listed. No agent is asked. The status is 1 for a word that means nothing.`

// explaining is one run of "heddle explain".
type explaining struct {
	kind  string
	flags []string // flags of other commands that stand for a field
}

func NewExplain(d cli.Deps) *cobra.Command {
	o, e := &cli.Output{}, &explaining{}
	c := &cobra.Command{
		Use: "explain [REASON|FIELD|RULE]", Short: "Explain a drop reason, a field of the file or a rule of advise",
		Long: explainLong,
		Example: "  heddle explain forged-transmit\n  heddle explain security.macLearning.limit\n" +
			"  heddle explain mac-limit --kind rule\n  heddle explain teaming -o yaml",
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			kind := explain.Kind(e.kind)
			if kind != "" && !slices.Contains(explain.Kinds(), kind) {
				return cli.Usagef("--kind %s: use %s", known.Shown(e.kind), cli.AnyOf(kindNames()))
			}
			return e.run(d, o, e.word(c, args), kind)
		},
	}
	o.Flag(c)
	c.Flags().StringVar(&e.kind, "kind", "", "only this kind of word: "+cli.AnyOf(kindNames()))
	_ = c.RegisterFlagCompletionFunc("kind", func(c *cobra.Command, args []string, begin string) ([]string,
		cobra.ShellCompDirective) {
		return cli.Offered(c, args, begin, cli.Words(kindNames()...))
	})
	c.ValidArgsFunction = func(c *cobra.Command, args []string, begin string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return cli.Offered(c, args, begin, cli.Words(explain.Names(explain.Kind(e.kind))...))
	}
	e.fieldFlags(c)
	return c
}

func kindNames() (list []string) {
	for _, k := range explain.Kinds() {
		list = append(list, string(k))
	}
	return list
}

// fieldFlags adds flags by which a field can be named as on the command line: --forged-transmits.
func (e *explaining) fieldFlags(c *cobra.Command) {
	add := func(name string) {
		c.Flags().Bool(name, false, "")
		_ = c.Flags().MarkHidden(name)
		e.flags = append(e.flags, name)
	}
	for _, f := range plan.Fields() {
		if f.Flag != "" {
			add(f.Flag)
		}
	}
	add("vlan")
}

// word returns the word to explain: the arguments, which may be a name of several words, or a flag.
func (e *explaining) word(c *cobra.Command, args []string) string {
	for _, name := range e.flags {
		if c.Flags().Changed(name) {
			args = append(args, name)
		}
	}
	return strings.Join(args, " ")
}

func (e *explaining) run(d cli.Deps, o *cli.Output, word string, kind explain.Kind) error {
	if word == "" {
		all := slices.DeleteFunc(explain.Topics(), func(t explain.Topic) bool { return kind != "" && t.Kind != kind })
		return o.Print(d, all, func(w io.Writer) error { return printTopics(w, all) })
	}
	found := explain.Find(word, kind)
	if len(found) == 0 {
		return errors.New(explain.Missing(word, kind))
	}
	return o.Print(d, found, func(w io.Writer) error {
		if len(found) > mostInFull {
			return printTopics(w, found)
		}
		l := &lines{w: w, d: d}
		for i, t := range found {
			if i > 0 {
				l.blank()
			}
			l.topic(&t)
		}
		return l.err
	})
}

// printTopics lists topics, one line each, by kind.
func printTopics(w io.Writer, list []explain.Topic) error {
	first := true
	for _, k := range explain.Kinds() {
		of := slices.DeleteFunc(slices.Clone(list), func(t explain.Topic) bool { return t.Kind != k })
		if len(of) == 0 {
			continue
		}
		if !first {
			if _, err := fmt.Fprintln(w); err != nil {
				return err
			}
		}
		first = false
		tab := &cli.Table{Head: []string{strings.ToUpper(string(k)), "MEANING"}, Keep: map[int]bool{0: true}}
		for _, t := range of {
			tab.Add(t.Name, t.Meaning)
		}
		if err := tab.Write(w); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(w, "\none of them in full: heddle explain NAME")
	return err
}

// topic prints one topic in full.
func (l *lines) topic(t *explain.Topic) {
	l.add(0, "", 0, fmt.Sprintf("%s %s", t.Kind, l.d.Coloured(cli.Yellow, t.Name)))
	l.add(2, "", 0, t.Meaning)
	for _, row := range [][2]string{
		{"drops", t.About}, {"setting", t.Policy}, {"counted", t.Counted},
		{"values", t.Values}, {"default", t.Default}, {"set at", strings.Join(t.SetAt, "; ")},
		{"in the file", t.Example}, {"flag", connectFlag(t)}, {"in vSphere", t.VSphere},
		{"causes", strings.Join(t.Causes,
			", ")},
		{"level", t.Level}, {"measured", t.Sign}, {"comes of it", t.Consequence},
		{"fix", t.Fix},
	} {
		if row[1] != "" {
			l.add(2, row[0]+":", 14, row[1])
		}
	}
	if t.Command != "" {
		l.put("  " + fmt.Sprintf("%-14s", "command:") + t.Command) // unbroken, so that it can be copied
	}
	if len(t.Statements) > 0 {
		l.add(2, "behaviour:", 14, strings.Join(t.Statements, ", ")+" in reference/behaviour.md of the documentation")
	}
}

func connectFlag(t *explain.Topic) string {
	if t.Flag == "" {
		return ""
	}
	return t.Flag + " of heddle port connect"
}
