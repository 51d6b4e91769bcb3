package access

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/cli/contexts"
	"heddle/internal/host/interrupt"
	"heddle/internal/identity"
)

func NewContext(d cli.Deps) *cobra.Command {
	c := cli.Group("context", "Which controllers you talk to, and as whom",
		"  heddle context add lab https://c1:7443 --ca sha256:… --token-file token\n"+
			"  heddle context list\n  heddle context use lab")
	c.Long = "A context is a cluster of controllers with your token for it, in a file that is yours alone " +
		"(~/.config/heddle/contexts.yaml, or where HEDDLE_CONTEXTS says). Commands such as \"heddle host list\" use " +
		"the current one, unless --context or --controller name another."
	c.AddCommand(newContextAdd(d), newContextList(d), newContextUse(d), newContextRemove(d))
	return c
}

// userContexts are those of the user.
func userContexts(d cli.Deps) (*contexts.File, error) {
	path, err := contexts.Path(d.Getenv)
	if err != nil {
		return nil, err
	}
	return contexts.Load(path)
}

// lockContexts are those of the user, for a change.
func lockContexts(d cli.Deps) (*contexts.File, func(), error) {
	path, err := contexts.Path(d.Getenv)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), cli.LockTime)
	defer cancel()
	return contexts.Lock(ctx, path)
}

// NamedContext is a context as it is listed.
type NamedContext struct {
	Name       string `json:"name"`
	Controller string `json:"controller"`
	Cluster    string `json:"cluster"`
	Current    bool   `json:"current"`
	// Token is the token's id, which is no secret; "" where its file can't be read.
	Token string `json:"token"`
	// TokenFile is where the token is, if it is in a file of its own.
	TokenFile string `json:"tokenFile"`
}

func listed(f *contexts.File, c contexts.Context) NamedContext {
	n := NamedContext{Name: c.Name, Controller: c.Controller, Cluster: c.Cluster, Current: f.Current == c.Name,
		TokenFile: c.TokenFile}
	if text, err := c.Secret(); err == nil {
		if token, err := identity.ParseAPIToken(text); err == nil {
			n.Token = string(token.ID)
		}
	}
	return n
}

func newContextAdd(d cli.Deps) *cobra.Command {
	o := &cli.Output{}
	var ca, tokenFile string
	var keep bool
	c := &cobra.Command{
		Use: "add NAME URL", Short: "Add a cluster of controllers, or change it",
		Long: "Add the cluster of the controller at URL, https://HOST:PORT, under a name of yours. The controller is " +
			"asked once, so that what is wrong shows now. --ca says by what it is known: the fingerprint of its " +
			"authority, which \"heddle access token create\" prints, or a file with its certificate.\n\n" +
			"Your token comes from a file, from standard input (--token-file -) or from the environment variable " +
			"HEDDLE_API_TOKEN; never from the command line, which everybody on the machine can read. It is kept in " +
			"the file of contexts, or with --keep-token-file where it is.",
		Example: "  heddle context add lab https://c1:7443 --ca sha256:5f… --token-file token",
		Args:    cli.Exactly("NAME", "URL"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(c.Context(), cli.CallTimeout)
			defer cancel()
			added, err := contextNamed(d, ctx, args, ca, tokenFile, keep)
			if err != nil {
				return err
			}
			file, unlock, err := lockContexts(d)
			if err != nil {
				return err
			}
			defer unlock()
			file.Put(*added.context)
			if err := file.Save(); err != nil {
				return err
			}
			return o.Print(d, listed(file, *added.context), func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "context %s: cluster %s, you are %s (%s)\n", added.context.Name,
					added.context.Cluster, added.me.Name, myRoles(added.me))
				return err
			})
		},
	}
	c.Flags().StringVar(&ca, "ca", d.Getenv(cli.CAVar),
		"fingerprint of the controllers' authority, or a file with its "+
			"certificate (environment "+cli.CAVar+")")
	c.Flags().StringVar(&tokenFile, "token-file", "", "file with your token; - for standard input")
	c.Flags().BoolVar(&keep, "keep-token-file", false, "read the token from its file each time")
	o.Flag(c)
	return c
}

// addedContext is a context that was tried.
type addedContext struct {
	context *contexts.Context
	me      *api.WhoAmI
}

// contextOf makes a context and tries it.
func contextNamed(d cli.Deps, ctx context.Context, args []string, ca, tokenFile string, keep bool) (
	*addedContext, error) {
	url, err := contexts.URL(args[1])
	if err != nil {
		return nil, &cli.UsageError{Err: err}
	}
	out := &contexts.Context{Name: args[0], Controller: url}
	if out.Token, err = givenToken(d, ctx, tokenFile); err != nil {
		return nil, err
	}
	conf, err := cli.Pinned(ca)
	if err != nil {
		return nil, err
	}
	shown := shownRoots(conf)
	fleet := api.NewRemoteFleet(api.Remote{URL: url, TLS: conf, Token: out.Token})
	me, err := fleet.WhoAmI(ctx)
	if err != nil {
		return nil, err
	}
	trust, err := fleet.Trust(ctx)
	if err != nil {
		return nil, err
	}
	// What the controller says of its roots counts as it is who it says: the connection has proved that.
	if out.Cluster, out.Roots = trust.Cluster, trust.Roots; *shown != identity.ClusterID(out.Cluster) {
		return nil, fmt.Errorf("the controller at %s is of cluster %s, and says it is of %s", url, *shown, out.Cluster)
	}
	if _, err := out.Trust(); err != nil {
		return nil, err
	}
	if keep {
		if tokenFile == "" || tokenFile == "-" {
			return nil, cli.Usagef("--keep-token-file needs a file: --token-file FILE")
		}
		if out.TokenFile, err = filepath.Abs(tokenFile); err != nil {
			return nil, err
		}
		out.Token = ""
	}
	return &addedContext{out, me}, nil
}

// shownRoots notes of which cluster the controller is that a connection is made to.
func shownRoots(conf *tls.Config) *identity.ClusterID {
	var cluster identity.ClusterID
	verify := conf.VerifyConnection
	conf.VerifyConnection = func(s tls.ConnectionState) error {
		if err := verify(s); err != nil {
			return err
		}
		name, err := identity.NameOf(s.PeerCertificates[0])
		cluster = name.Cluster
		return err
	}
	return &cluster
}

// givenToken is the token of somebody who adds a context.
func givenToken(d cli.Deps, ctx context.Context, file string) (string, error) {
	var b []byte
	var err error
	switch file {
	case "":
		if b = []byte(d.Getenv(cli.TokenVar)); len(b) == 0 {
			return "", cli.Usagef("say where your token is: --token-file FILE (- for standard input), or %s",
				cli.TokenVar)
		}
	case "-":
		b, err = io.ReadAll(io.LimitReader(interrupt.Reader(ctx, d.Stdin), 4<<10))
	default:
		b, err = contexts.ReadPrivate(file)
	}
	if err != nil {
		return "", err
	}
	text := string(bytes.TrimSpace(b))
	return text, cli.CheckToken(text)
}

func newContextList(d cli.Deps) *cobra.Command {
	o := &cli.Output{}
	c := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the contexts; * is the current one",
		Example: "  heddle context list", Args: cli.Exactly(),
		RunE: func(*cobra.Command, []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			file, err := userContexts(d)
			if err != nil {
				return err
			}
			list := []NamedContext{}
			for _, c := range file.Contexts {
				list = append(list, listed(file, c))
			}
			return o.Print(d, list, func(w io.Writer) error {
				tab := &cli.Table{Head: []string{"", "CONTEXT", "CONTROLLER", "CLUSTER", "TOKEN"}}
				for _, n := range list {
					tab.Add(map[bool]string{true: "*"}[n.Current], n.Name, n.Controller, n.Cluster, cli.Dash(n.Token))
				}
				return tab.Write(w)
			})
		},
	}
	o.Flag(c)
	return c
}

// UsedContext is what "heddle context use" and "heddle context remove" did.
type UsedContext struct {
	Name string `json:"name"`
	// Current is the context that commands use now; "" for none.
	Current string `json:"current"`
}

// changed changes the user's contexts, and prints what was done.
func changeContexts(d cli.Deps, o *cli.Output, change func(*contexts.File) (UsedContext, string, error)) error {
	if err := o.Check(); err != nil {
		return err
	}
	file, unlock, err := lockContexts(d)
	if err != nil {
		return err
	}
	defer unlock()
	out, text, err := change(file)
	if err == nil {
		err = file.Save()
	}
	if err != nil {
		return err
	}
	return o.Print(d, out, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, text)
		return err
	})
}

func newContextUse(d cli.Deps) *cobra.Command {
	o := &cli.Output{}
	c := &cobra.Command{
		Use: "use NAME", Short: "Make a context the current one", Example: "  heddle context use lab",
		Long: "Make a context the current one: commands such as \"heddle host list\" talk to its controllers. \"-\" " +
			"is for none, so that they talk to the controller on this machine.",
		Args: cli.Exactly("NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			return changeContexts(d, o, func(file *contexts.File) (UsedContext, string, error) {
				name := args[0]
				if name == "-" {
					file.Current = ""
					return UsedContext{}, "commands use the controller on this machine", nil
				}
				if _, ok := file.Get(name); !ok {
					return UsedContext{}, "", cli.Usagef("there is no context %q: see heddle context list", name)
				}
				file.Current = name
				return UsedContext{name, name}, "commands use context " + name, nil
			})
		},
	}
	o.Flag(c)
	return c
}

func newContextRemove(d cli.Deps) *cobra.Command {
	o := &cli.Output{}
	c := &cobra.Command{
		Use: "remove NAME", Aliases: []string{"rm"}, Short: "Remove a context from your file",
		Long: "Remove a context, with the token in it, from your file. The token counts until it expires or is " +
			"revoked (heddle access token revoke).",
		Example: "  heddle context remove lab", Args: cli.Exactly("NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			return changeContexts(d, o, func(file *contexts.File) (UsedContext, string, error) {
				if !file.Remove(args[0]) {
					return UsedContext{}, "", cli.Usagef("there is no context %q: see heddle context list", args[0])
				}
				return UsedContext{args[0], file.Current}, "context " + args[0] + " is removed", nil
			})
		},
	}
	o.Flag(c)
	return c
}

// untilText is when something ends, for a table.
func untilText(at time.Time, now time.Time) string {
	if at.IsZero() {
		return "-"
	}
	text := at.Local().Format(time.DateTime)
	if now.After(at) {
		text += " (over)"
	}
	return text
}
