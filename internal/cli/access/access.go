package access

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/platform/access/roles"
	"heddle/internal/spec/printable"
)

func New(d cli.Deps) *cobra.Command {
	t := &cli.FleetTarget{}
	c := cli.Group("access", "Who may do what at the controllers: tokens and roles",
		"  heddle access token create --name ann --role operator --for 30d\n  heddle access token list\n"+
			"  heddle access whoami")
	c.Long = "People and tools call the controllers with a token, which has an end. It allows what its role allows, " +
		"and what is granted to it, to its owner and to their groups: each a role for the whole cluster, a switch or " +
		"a port group (\"heddle access role list\"). Root at a controller's socket is an admin and needs no token: " +
		"the first token is made there."
	t.Flag(d, c, cli.DefaultController)
	token := cli.Group("token", "Tokens of people and tools",
		"  heddle access token create --name ann --role viewer --for 30d\n  heddle access token list\n"+
			"  heddle access token revoke x5wrzq2k")
	token.AddCommand(newTokenCreate(d, t), newTokenList(d, t), newTokenRevoke(d, t))
	c.AddCommand(token, newRoles(d), newGrants(d, t), newGroups(d, t), newWhoCan(d, t), newAccessExplain(d, t),
		newAccessWho(d, t), newAccessCA(d, t))
	return c
}

func newTokenCreate(d cli.Deps, t *cli.FleetTarget) *cobra.Command {
	o := &cli.Output{}
	q := api.TokenTerms{}
	var role string
	var on []string
	c := &cobra.Command{
		Use: "create --name NAME --role ROLE", Short: "Make a token for a person or a tool",
		Long: "Make a token for a person or a tool. It is shown this once, on standard output; how to use it is on " +
			"standard error. The name says whose it is, in lists and in the audit log. The role (\"heddle access " +
			"role list\") is for the whole cluster, or for the switches and port groups of --on. Captures and traces " +
			"show what guests send: they need an admin, the role capture, or --look.",
		Example: "  heddle access token create --name grafana --role viewer --for 365d > token\n" +
			"  heddle access token create --name ann --role operator --look --for 30d\n" +
			"  heddle access token create --name ann --role viewer --on dvs/web,dvs/db",
		Args: cli.Exactly(),
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if err := o.Check(); err != nil {
				return err
			}
			if q.Scopes, err = scopesOf(on); err != nil {
				return err
			}
			q.Role = api.AccessRole(role)
			switch {
			case q.Name == "":
				return cli.Usagef("--name is needed: it says whose token it is")
			case roles.Role(role).Known() != nil:
				return cli.Usagef("--role: %v", roles.Role(role).Known())
			case q.Lasts <= 0:
				return cli.Usagef("--for %s: a token counts for some time, such as 30d", q.Lasts)
			}
			made, err := cli.AskFleet(c, t, 0, func(ctx context.Context, f *api.Fleet) (*api.NewToken, error) {
				return f.CreateToken(ctx, q)
			})
			if err != nil {
				return err
			}
			return o.Print(d, made, func(w io.Writer) error {
				if _, err := fmt.Fprintln(w, made.Token); err != nil {
					return err
				}
				_, err := fmt.Fprint(d.Stderr, howToUse(made))
				return err
			})
		},
	}
	f := c.Flags()
	f.StringVar(&q.Name, "name", "", "whose it is: a person or a tool")
	f.StringVar(&role, "role", "", "what it allows: "+roles.Words(roles.All(), "or"))
	f.StringSliceVar(&on, "on", nil, "for which part of the cluster: SWITCH or SWITCH/GROUP (default: all of it)")
	roleCompletion(c)
	f.BoolVar(&q.Look, "look", false, "it allows captures and traces")
	f.DurationVar(&q.Lasts, "for", 30*24*time.Hour, "how long it counts, such as 30d")
	o.Flag(c)
	return c
}

// howToUse says what the owner of a token does with it.
func howToUse(made *api.NewToken) string {
	url := "https://CONTROLLER:7443"
	if len(made.Trust.URLs) > 0 {
		url = made.Trust.URLs[0]
	}
	return fmt.Sprintf("token %s counts until %s; it is not shown again. Keep it in a file of mode 0600, and:\n"+
		"  heddle context add NAME %s --ca sha256:%s --token-file FILE\n", made.ID,
		made.Expires.Local().Format(time.DateTime), url, made.Trust.Fingerprint)
}

func newTokenList(d cli.Deps, t *cli.FleetTarget) *cobra.Command {
	o := &cli.Output{}
	c := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the tokens of people and tools",
		Long: "List the tokens of people and tools, without their secrets. One that has expired is listed for 30 " +
			"days more.",
		Example: "  heddle access token list\n  heddle access token list -o json", Args: cli.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			return cli.AsFleet(c, d, t, o, func(ctx context.Context, f *api.Fleet) ([]api.AccessToken, error) {
				return f.Tokens(ctx)
			}, func(w io.Writer, list []api.AccessToken) error { return tokenTable(list, time.Now()).Write(w) })
		},
	}
	o.Flag(c)
	return c
}

func tokenTable(list []api.AccessToken, now time.Time) *cli.Table {
	head := []string{"ID", "NAME", "ROLE", "LOOK", "EXPIRES", "MADE BY"}
	tab := &cli.Table{Head: head, Keep: cli.Columns(head, "ID", "ROLE", "EXPIRES")}
	for _, k := range list {
		tab.Add(k.ID, k.Name, tokenRoles(k), cli.YesNo(k.Look), untilText(k.Expires, now), k.By)
	}
	return tab
}

// tokenRoles is what a token allows by itself.
func tokenRoles(k api.AccessToken) string {
	if len(k.Grants) == 0 {
		return cli.Dash(string(k.Role))
	}
	return rolesText(k.Grants)
}

// rolesText is what grants allow, in short.
func rolesText(list []api.AccessGrant) string {
	var all []roles.Grant
	for _, g := range list {
		all = append(all, roles.Grant{Role: roles.Role(g.Role), Scope: roles.Scope{Switch: g.Scope.Switch,
			PortGroup: g.Scope.PortGroup}})
	}
	return roles.NewAccess(all...).Roles()
}

func newTokenRevoke(d cli.Deps, t *cli.FleetTarget) *cobra.Command {
	o := &cli.Output{}
	c := &cobra.Command{
		Use: "revoke ID", Short: "Withdraw a token",
		Long: "Withdraw a token: no controller takes it any more, and what is under way with it ends. ID is what " +
			"\"heddle access token list\" shows.",
		Example: "  heddle access token revoke x5wrzq2k", Args: cli.Exactly("ID"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			id := args[0]
			if strings.Contains(id, ".") {
				return cli.Usagef("give the token's id (heddle access token list), not the token: a command line " +
					"is no " +
					"place for secrets, so revoke this one and make another")
			}
			if _, err := cli.AskFleet(c, t, 0, func(ctx context.Context, f *api.Fleet) (struct{}, error) {
				return struct{}{}, f.RevokeToken(ctx, id)
			}); err != nil {
				return err
			}
			return o.Print(d, RevokedToken{id}, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "token %s is revoked\n", id)
				return err
			})
		},
	}
	o.Flag(c)
	return c
}

// RevokedToken is what "heddle access token revoke" did.
type RevokedToken struct {
	ID string `json:"id"`
}

func newAccessWho(d cli.Deps, t *cli.FleetTarget) *cobra.Command {
	o := &cli.Output{}
	c := &cobra.Command{
		Use: "whoami", Short: "Show as whom the controller knows you", Example: "  heddle access whoami",
		Args: cli.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			me, err := cli.AskFleet(c, t, 0, func(ctx context.Context, f *api.Fleet) (*api.WhoAmI, error) {
				return f.WhoAmI(ctx)
			})
			if err != nil {
				return err
			}
			return o.Print(d, me, func(w io.Writer) error {
				lines := [][2]string{{"name", me.Name}, {"role", myRoles(me)}, {"may look", cli.YesNo(me.Look)},
					{"cluster", me.Cluster}, {"until", untilText(me.Expires, time.Now())}}
				if len(me.Groups) > 0 {
					lines = append(lines, [2]string{"groups", strings.Join(me.Groups, ", ")})
				}
				if me.Issuer != "" {
					lines = append(lines, [2]string{"signed in", me.Issuer})
				}
				for _, l := range lines {
					if _, err := fmt.Fprintf(w, "%-9s %s\n", l[0], printable.Text(l[1])); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	o.Flag(c)
	return c
}

// myRoles are the caller's roles, each with its part of the cluster.
func myRoles(me *api.WhoAmI) string {
	if len(me.Grants) == 0 {
		return cli.Dash(string(me.Role))
	}
	return cli.Dash(rolesText(me.Grants))
}

func newAccessCA(d cli.Deps, t *cli.FleetTarget) *cobra.Command {
	o := &cli.Output{}
	c := &cobra.Command{
		Use: "ca", Short: "Print the certificates by which the controllers are known (PEM)",
		Long: "Print the certificates by which the controllers are known, in PEM form, for programs such as curl. " +
			"The fingerprint, and where the controllers answer, are in -o json.",
		Example: "  heddle access ca > ca.pem\n  heddle access ca -o json", Args: cli.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			trust, err := cli.AskFleet(c, t, 0, func(ctx context.Context, f *api.Fleet) (*api.Trust, error) {
				return f.Trust(ctx)
			})
			if err != nil {
				return err
			}
			return o.Print(d, trust, func(w io.Writer) error {
				_, err := io.WriteString(w, trust.Roots)
				return err
			})
		},
	}
	o.Flag(c)
	return c
}

func NewAudit(d cli.Deps) *cobra.Command {
	t := &cli.FleetTarget{}
	c := cli.Group("audit", "What was changed or refused at the controllers", "  heddle audit list --since 1h")
	c.Long = "Each controller records what people and tools changed at it, and whom it refused: who, from where, " +
		"what and with which result. Whichever is asked asks the others. An entry is on disk before what it is about " +
		"happens. Reading is not recorded, " +
		"but for captures and traces."
	t.Flag(d, c, cli.DefaultController)
	c.AddCommand(newAuditList(d, t), newAuditVerify(d, t))
	return c
}

func newAuditList(d cli.Deps, t *cli.FleetTarget) *cobra.Command {
	o := &cli.Output{}
	q := api.AuditQuery{}
	var since, until time.Duration
	var result string
	c := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List entries of the audit log, the newest at the end",
		Long: "List entries of the audit logs of all controllers, by their time, the newest at the end. A controller " +
			"that does not answer is named, and the exit status is 1. It takes an admin. RESULT is done, failed, " +
			"refused, or begun: the controller ended before the call did.",
		Example: "  heddle audit list --since 1d\n  heddle audit list --who ann --call ApplyDefinition\n" +
			"  heddle audit list --result refused -o json",
		Args: cli.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			q.Result = api.AuditResult(result)
			switch q.Result {
			case "", api.AuditBegun, api.AuditDone, api.AuditFailed, api.AuditRefused:
			default:
				return cli.Usagef("--result %q: use done, failed, refused or begun", result)
			}
			if q.Most <= 0 {
				return cli.Usagef("--last %d: give how many entries are listed at most", q.Most)
			}
			now := time.Now()
			if since > 0 {
				q.Since = now.Add(-since)
			}
			if until > 0 {
				q.Until = now.Add(-until)
			}
			list, err := cli.AskFleet(c, t, 0, func(ctx context.Context, f *api.Fleet) (*api.Audit, error) {
				return f.Audit(ctx, q)
			})
			if err != nil {
				return err
			}
			err = o.Print(d, list, func(w io.Writer) error { return printAudit(d, w, list) })
			return errors.Join(err, auditMissing(d, list))
		},
	}
	f := c.Flags()
	f.DurationVar(&since, "since", 0, "entries of this long ago and newer, such as 1h or 30d")
	f.DurationVar(&until, "until", 0, "entries older than this long ago")
	f.StringVar(&q.Controller, "at", "", "entries of this controller alone")
	f.StringVar(&q.Who, "who", "", "entries of whom this is a part of the name")
	f.StringVar(&q.Call, "call", "", "entries of calls with this in their name")
	f.StringVar(&q.Object, "object", "", "entries about objects with this in their name")
	f.StringVar(&q.From, "from", "", "entries of addresses with this in them")
	f.StringVar(&result, "result", "", "entries with this result: done, failed, refused or begun")
	f.IntVar(&q.Most, "last", 200, "how many entries are listed at most: the newest")
	_ = c.RegisterFlagCompletionFunc("result", cobra.FixedCompletions([]string{"done", "failed", "refused", "begun"},
		cobra.ShellCompDirectiveNoFileComp))
	o.Flag(c)
	return c
}

func printAudit(d cli.Deps, w io.Writer, list *api.Audit) error {
	head := []string{"TIME", "CONTROLLER", "WHO", "FROM", "CALL", "RESULT", "OBJECTS"}
	tab := &cli.Table{Head: head, Keep: cli.Columns(head, "TIME", "RESULT"), Names: cli.Columns(head, "CONTROLLER")}
	for _, e := range list.Entries {
		what := strings.Join(e.Objects, ", ")
		if e.Error != "" {
			what = strings.TrimPrefix(what+": "+e.Error, ": ")
		}
		result := string(e.Result)
		if e.Times > 1 {
			result += " " + strconv.Itoa(e.Times) + "×"
		}
		tab.Add(e.At.Local().Format(time.DateTime), cli.Dash(e.Controller), cli.Dash(e.Who), cli.Dash(e.From), e.Call,
			result,
			cli.Dash(what))
	}
	cli.LeaveOutTheOnly("CONTROLLER")(tab)
	if err := tab.Write(w); err != nil {
		return err
	}
	if list.More > 0 {
		_, err := fmt.Fprintf(d.Stderr, "%d older entries are left out: --last lists more\n", list.More)
		if err != nil {
			return err
		}
	}
	if list.Damaged > 0 {
		_, err := fmt.Fprintf(d.Stderr, "%d lines of the log can't be read\n", list.Damaged)
		return err
	}
	return nil
}

// auditMissing names the controllers whose entries are missing, and gives the exit status.
func auditMissing(d cli.Deps, list *api.Audit) error {
	for _, name := range list.Unreachable {
		fmt.Fprintf(d.Stderr, "heddle: controller %s does not answer: what was done there is missing\n",
			printable.Text(name))
	}
	if len(list.Unreachable) > 0 {
		return &cli.SilentError{Status: cli.ExitFailure}
	}
	return nil
}
