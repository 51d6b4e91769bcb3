package access

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/platform/access/roles"
	"heddle/internal/spec/printable"
)

func newGroups(d cli.Deps, t *cli.FleetTarget) *cobra.Command {
	c := cli.Group("group", "Groups of people and tokens that the controllers keep",
		"  heddle access group create net-team --person ann --token x5wrzq2k\n"+
			"  heddle access group list\n  heddle access group leave net-team --person ann")
	c.Long = "A group has the roles that are granted to it (heddle access grant create --group), and so has each " +
		"member. Beside these groups there are those that an identity provider names when somebody signs in: a group " +
		"of both by one name is one."
	c.AddCommand(newGroupChange(d, t, true), newGroupChange(d, t, false), newGroupList(d, t), newGroupRemove(d, t))
	return c
}

// newGroupChange adds members to a group, which is made where it is not there, or takes them out.
func newGroupChange(d cli.Deps, t *cli.FleetTarget, add bool) *cobra.Command {
	o := &cli.Output{}
	var people, tokens []string
	c := &cobra.Command{
		Use: "create NAME", Aliases: []string{"add"}, Short: "Make a group, or add members to it",
		Example: "  heddle access group create net-team --person ann --person bob",
		Args:    cli.Exactly("NAME"),
	}
	if !add {
		c.Use, c.Aliases, c.Short = "leave NAME", nil, "Take members out of a group"
		c.Example = "  heddle access group leave net-team --person bob"
	}
	c.RunE = func(_ *cobra.Command, args []string) error {
		var members []api.Grantee
		for _, p := range people {
			members = append(members, api.Grantee{Kind: string(roles.Person), Name: p})
		}
		for _, k := range tokens {
			if strings.Contains(k, ".") {
				return cli.Usagef("give the token's id (heddle access token list), not the token")
			}
			members = append(members, api.Grantee{Kind: string(roles.Token), Name: k})
		}
		q := api.GroupChange{Name: args[0], Add: members}
		if !add {
			if q.Add, q.Remove = nil, members; len(members) == 0 {
				return cli.Usagef("say who leaves: --person or --token")
			}
		}
		return cli.AsFleet(c, d, t, o, func(ctx context.Context, f *api.Fleet) (*api.AccessGroup, error) {
			return f.PutGroup(ctx, q)
		}, func(w io.Writer, g *api.AccessGroup) error {
			_, err := fmt.Fprintf(w, "group %s: %s\n", printable.Text(g.Name), groupMembers(g))
			return err
		})
	}
	c.Flags().StringSliceVar(&people, "person", nil, "a person, by the name with which they sign in")
	c.Flags().StringSliceVar(&tokens, "token", nil, "a token, by its id")
	o.Flag(c)
	return c
}

func groupMembers(g *api.AccessGroup) string {
	var list []string
	for _, m := range g.Members {
		name := printable.Text(m.Name)
		if m.Kind == string(roles.Token) {
			name = "token " + name
		}
		list = append(list, name)
	}
	if len(list) == 0 {
		return "no members"
	}
	return strings.Join(list, ", ")
}

func newGroupList(d cli.Deps, t *cli.FleetTarget) *cobra.Command {
	o := &cli.Output{}
	c := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the groups that the controllers keep",
		Example: "  heddle access group list", Args: cli.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			return cli.AsFleet(c, d, t, o, func(ctx context.Context, f *api.Fleet) ([]api.AccessGroup, error) {
				return f.Groups(ctx)
			}, func(w io.Writer, list []api.AccessGroup) error {
				tab := &cli.Table{Head: []string{"GROUP", "MEMBERS", "BY"}}
				for _, g := range list {
					tab.Add(g.Name, groupMembers(&g), cli.Dash(g.By))
				}
				return tab.Write(w)
			})
		},
	}
	o.Flag(c)
	return c
}

// RemovedGroup is what "heddle access group remove" did.
type RemovedGroup struct {
	Name string `json:"name"`
}

func newGroupRemove(d cli.Deps, t *cli.FleetTarget) *cobra.Command {
	o := &cli.Output{}
	c := &cobra.Command{
		Use: "remove NAME", Aliases: []string{"rm"}, Short: "Remove a group",
		Long: "Remove a group that the controllers keep. Grants to it stay: they count for a group of that name of " +
			"the identity provider.",
		Example: "  heddle access group remove net-team", Args: cli.Exactly("NAME"),
		RunE: func(c *cobra.Command, args []string) error {
			return cli.AsFleet(c, d, t, o, func(ctx context.Context, f *api.Fleet) (RemovedGroup, error) {
				return RemovedGroup{args[0]}, f.RemoveGroup(ctx, args[0])
			}, func(w io.Writer, g RemovedGroup) error {
				_, err := fmt.Fprintf(w, "group %s is removed\n", printable.Text(g.Name))
				return err
			})
		},
	}
	o.Flag(c)
	return c
}

// RoleEntry is a role as "heddle access role list" shows it.
type RoleEntry struct {
	Role        string   `json:"role"`
	Permissions []string `json:"permissions"`
}

func newRoles(d cli.Deps) *cobra.Command {
	c := cli.Group("role", "The roles, and what each of them may", "  heddle access role list")
	o := &cli.Output{}
	list := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the roles with their permissions",
		Long:    "List the roles with their permissions: " + permissionText() + ".",
		Example: "  heddle access role list", Args: cli.Exactly(),
		RunE: func(*cobra.Command, []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			out := []RoleEntry{}
			for _, r := range roles.All() {
				e := RoleEntry{Role: string(r)}
				for _, p := range r.Permissions() {
					e.Permissions = append(e.Permissions, string(p))
				}
				out = append(out, e)
			}
			return o.Print(d, out, func(w io.Writer) error {
				tab := &cli.Table{Head: []string{"ROLE", "PERMISSIONS"}}
				for _, e := range out {
					tab.Add(e.Role, strings.Join(e.Permissions, ", "))
				}
				return tab.Write(w)
			})
		},
	}
	o.Flag(list)
	c.AddCommand(list)
	return c
}

func permissionText() string {
	var list []string
	for _, p := range roles.Permissions() {
		list = append(list, string(p)+" ("+p.What()+")")
	}
	return strings.Join(list, "; ")
}
