package access

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/platform/access/roles"
	"heddle/internal/spec/printable"
)

// scopeText is a part of the cluster as commands take it.
func scopeText(s api.AccessScope) string {
	return roles.Scope{Switch: s.Switch, PortGroup: s.PortGroup}.Short()
}

// scopesOf are those of flags and arguments.
func scopesOf(texts []string) (list []api.AccessScope, err error) {
	for _, t := range texts {
		s, err := roles.ParseScope(t)
		if err != nil {
			return nil, &cli.UsageError{Err: err}
		}
		list = append(list, api.AccessScope{Switch: s.Switch, PortGroup: s.PortGroup})
	}
	return list, nil
}

// granteeFlags are the flags that name a person, a group or a token.
type granteeFlags struct{ person, group, token string }

func (g *granteeFlags) flags(c *cobra.Command) {
	c.Flags().StringVar(&g.person, "person", "", "a person, by the name with which they sign in")
	c.Flags().StringVar(&g.group, "group", "", "a group, local or of the identity provider")
	c.Flags().StringVar(&g.token, "token", "", "a token, by its id")
}

// one is the grantee; nil where none is named.
func (g *granteeFlags) one() (*api.Grantee, error) {
	var found []api.Grantee
	for kind, name := range map[roles.Kind]string{roles.Person: g.person, roles.Group: g.group, roles.Token: g.token} {
		if name != "" {
			found = append(found, api.Grantee{Kind: string(kind), Name: name})
		}
	}
	switch len(found) {
	case 0:
		return nil, nil
	case 1:
		if found[0].Kind == string(roles.Token) && strings.Contains(found[0].Name, ".") {
			return nil, cli.Usagef("give the token's id (heddle access token list), not the token")
		}
		return &found[0], nil
	}
	return nil, cli.Usagef("give one of --person, --group and --token")
}

func newGrants(d cli.Deps, t *cli.FleetTarget) *cobra.Command {
	c := cli.Group("grant", "Roles of people, groups and tokens, each for a part of the cluster",
		"  heddle access grant create --group net-team --role network-admin --on dvs\n"+
			"  heddle access grant list\n  heddle access grant revoke m3kq7zda")
	c.AddCommand(newGrantCreate(d, t), newGrantList(d, t), newGrantRevoke(d, t))
	return c
}

func newGrantCreate(d cli.Deps, t *cli.FleetTarget) *cobra.Command {
	o, who := &cli.Output{}, &granteeFlags{}
	var role, on string
	c := &cobra.Command{
		Use: "create --role ROLE {--person|--group|--token} NAME", Short: "Give somebody a role",
		Long: "Give a person, a group or a token a role: for the whole cluster, for a switch with all its port " +
			"groups (--on SWITCH), or for one port group (--on SWITCH/GROUP). \"heddle access role list\" says what " +
			"each role may. Somebody with several roles may do what any of them allows. It counts at once.",
		Example: "  heddle access grant create --group net-team --role network-admin\n" +
			"  heddle access grant create --person ann --role operator --on dvs/web\n" +
			"  heddle access grant create --token x5wrzq2k --role capture --on dvs/db",
		Args: cli.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			to, err := who.one()
			switch {
			case err != nil:
				return err
			case to == nil:
				return cli.Usagef("say to whom: --person, --group or --token")
			case roles.Role(role).Known() != nil:
				return cli.Usagef("--role: %v", roles.Role(role).Known())
			}
			scopes, err := scopesOf([]string{on})
			if err != nil {
				return err
			}
			return cli.AsFleet(c, d, t, o, func(ctx context.Context, f *api.Fleet) (*api.AccessGrant, error) {
				return f.CreateGrant(ctx, *to, api.AccessRole(role), scopes[0])
			}, func(w io.Writer, g *api.AccessGrant) error {
				_, err := fmt.Fprintf(w, "grant %s: %s %s is %s of %s\n", g.ID, g.Who.Kind, printable.Text(g.Who.Name),
					g.Role, scopeText(g.Scope))
				return err
			})
		},
	}
	who.flags(c)
	c.Flags().StringVar(&role, "role", "", "what is granted: "+roles.Words(roles.All(), "or"))
	c.Flags().StringVar(&on, "on", "", "for which part of the cluster: SWITCH or SWITCH/GROUP (default: all of it)")
	roleCompletion(c)
	o.Flag(c)
	return c
}

func roleCompletion(c *cobra.Command) {
	var words []string
	for _, r := range roles.All() {
		words = append(words, string(r))
	}
	_ = c.RegisterFlagCompletionFunc("role", cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

func newGrantList(d cli.Deps, t *cli.FleetTarget) *cobra.Command {
	o, who := &cli.Output{}, &granteeFlags{}
	c := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List who has which role",
		Long: "List who has which role for which part of the cluster. What a token allows by itself has no ID: it " +
			"ends with the token.",
		Example: "  heddle access grant list\n  heddle access grant list --group net-team -o json", Args: cli.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			of, err := who.one()
			if err != nil {
				return err
			}
			return cli.AsFleet(c, d, t, o, func(ctx context.Context, f *api.Fleet) ([]api.AccessGrant, error) {
				return f.Grants(ctx, of)
			}, func(w io.Writer, list []api.AccessGrant) error { return grantTable(list).Write(w) })
		},
	}
	who.flags(c)
	o.Flag(c)
	return c
}

func grantTable(list []api.AccessGrant) *cli.Table {
	head := []string{"ID", "WHO", "NAME", "ROLE", "ON", "MADE", "BY"}
	tab := &cli.Table{Head: head, Keep: cli.Columns(head, "ID", "WHO", "NAME", "ROLE", "ON")}
	for _, g := range list {
		made := "-"
		if !g.Made.IsZero() {
			made = g.Made.Local().Format(time.DateTime)
		}
		tab.Add(cli.Dash(g.ID), cmp.Or(g.Who.Kind, "-"), cli.Dash(g.Who.Name), string(g.Role), scopeText(g.Scope), made,
			cli.Dash(g.By))
	}
	return tab
}

func newGrantRevoke(d cli.Deps, t *cli.FleetTarget) *cobra.Command {
	o := &cli.Output{}
	c := &cobra.Command{
		Use: "revoke ID", Short: "Take a role back",
		Long: "Take a role back. Calls under way of who had it end. ID is what \"heddle access grant list\" shows; " +
			"what a token allows by itself ends with the token (heddle access token revoke).",
		Example: "  heddle access grant revoke m3kq7zda", Args: cli.Exactly("ID"),
		RunE: func(c *cobra.Command, args []string) error {
			return cli.AsFleet(c, d, t, o, func(ctx context.Context, f *api.Fleet) (*api.AccessGrant, error) {
				return f.RevokeGrant(ctx, args[0])
			}, func(w io.Writer, g *api.AccessGrant) error {
				_, err := fmt.Fprintf(w, "grant %s is revoked: %s %s was %s of %s\n", g.ID, g.Who.Kind,
					printable.Text(g.Who.Name), g.Role, scopeText(g.Scope))
				return err
			})
		},
	}
	o.Flag(c)
	return c
}

// question are the arguments and flags of who asks about a permission.
type question struct {
	q     api.AccessQuestion
	field string
}

func (x *question) flags(c *cobra.Command) {
	c.Flags().StringVar(&x.field, "field", "", "ask about a change of this field of the definition, such as\n"+
		"security.promiscuous, in place of PERMISSION")
}

// read reads PERMISSION and OBJECT; with --field OBJECT alone.
func (x *question) read(args []string) error {
	x.q.Field = x.field
	if x.field == "" {
		if len(args) == 0 {
			return cli.Usagef("say which permission (%s), or --field FIELD", roles.Words(roles.Permissions(), "or"))
		}
		x.q.Permission, args = args[0], args[1:]
		known := false
		for _, p := range roles.Permissions() {
			known = known || string(p) == x.q.Permission
		}
		if !known {
			return cli.Usagef("there is no permission %q: use %s", x.q.Permission, roles.Words(roles.Permissions(),
				"or"))
		}
	}
	if len(args) > 1 {
		return cli.Usagef("give one part of the cluster: SWITCH or SWITCH/GROUP")
	}
	scopes, err := scopesOf(append(args, "")[:1])
	if err == nil {
		x.q.Scope = scopes[0]
	}
	return err
}

func newWhoCan(d cli.Deps, t *cli.FleetTarget) *cobra.Command {
	o, x := &cli.Output{}, &question{}
	c := &cobra.Command{
		Use: "who-can PERMISSION [SWITCH[/GROUP]]", Short: "List who may do something",
		Long: "List the grants by which something may be done to a switch, a port group, or without either to the " +
			"whole cluster. \"heddle access role list\" lists the permissions.",
		Example: "  heddle access who-can capture dvs/db\n  heddle access who-can --field vlan dvs/web",
		Args:    cobra.MaximumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			if err := x.read(args); err != nil {
				return err
			}
			return cli.AsFleet(c, d, t, o, func(ctx context.Context, f *api.Fleet) (*api.WhoCan, error) {
				return f.WhoCan(ctx, x.q)
			}, func(w io.Writer, out *api.WhoCan) error { return grantTable(out.Grants).Write(w) })
		},
	}
	x.flags(c)
	o.Flag(c)
	return c
}

func newAccessExplain(d cli.Deps, t *cli.FleetTarget) *cobra.Command {
	o, x, who := &cli.Output{}, &question{}, &granteeFlags{}
	var groups []string
	c := &cobra.Command{
		Use: "explain PERMISSION [SWITCH[/GROUP]]", Short: "Say why something is allowed or refused",
		Long: "Say whether you may do something, by which grant, or what is missing. An admin can ask about others: " +
			"--person (with the groups that the identity provider names: --of-group), --group or --token. The exit " +
			"status is 1 where it is not allowed.",
		Example: "  heddle access explain network dvs/web\n" +
			"  heddle access explain --field security.promiscuous dvs/web\n" +
			"  heddle access explain capture dvs/db --person ann --of-group net-team",
		Args: cobra.MaximumNArgs(2),
		RunE: func(c *cobra.Command, args []string) (err error) {
			if err := x.read(args); err != nil {
				return err
			}
			if x.q.Who, err = who.one(); err != nil {
				return err
			}
			if x.q.Groups = groups; len(groups) > 0 && who.person == "" {
				return cli.Usagef("--of-group is for --person")
			}
			allowed := false
			err = cli.AsFleet(c, d, t, o, func(ctx context.Context, f *api.Fleet) (*api.AccessAnswer, error) {
				out, err := f.ExplainAccess(ctx, x.q)
				allowed = err == nil && out.Allowed
				return out, err
			}, func(w io.Writer, out *api.AccessAnswer) error { return printExplained(w, out) })
			if err == nil && !allowed {
				return &cli.SilentError{Status: cli.ExitFailure}
			}
			return err
		},
	}
	x.flags(c)
	who.flags(c)
	c.Flags().StringSliceVar(&groups, "of-group", nil, "a group of the person that the identity provider names")
	o.Flag(c)
	return c
}

func printExplained(w io.Writer, out *api.AccessAnswer) error {
	var errs []error
	say := func(format string, args ...any) {
		_, err := fmt.Fprintf(w, format+"\n", args...)
		errs = append(errs, err)
	}
	if out.Allowed {
		say("%s may", printable.Text(cmp.Or(out.Name, "the caller")))
		for _, g := range out.By {
			say("  by %s of %s%s", g.Role, scopeText(g.Scope), granteeText(g))
		}
		return errors.Join(errs...)
	}
	for _, line := range strings.Split(out.Why, "\n") {
		say("%s", printable.Text(line))
	}
	for _, g := range out.Grants {
		say("  has %s of %s%s", g.Role, scopeText(g.Scope), granteeText(g))
	}
	return errors.Join(errs...)
}

// granteeText names the grant behind its role.
func granteeText(g api.AccessGrant) string {
	if g.Who.Name == "" {
		return ""
	}
	text := ", as " + g.Who.Kind + " " + printable.Text(g.Who.Name)
	if g.ID != "" {
		text += ", grant " + g.ID
	}
	return text
}
