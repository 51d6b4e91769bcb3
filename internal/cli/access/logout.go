package access

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/cli/contexts"
)

func NewLogout(d cli.Deps) *cobra.Command {
	o := &cli.Output{}
	c := &cobra.Command{
		Use: "logout [CONTEXT]", Short: "Sign out at the controllers",
		Long: "Sign out: the controllers withdraw your token, what is under way with it ends, the identity provider " +
			"takes back what would renew it, and both are removed from your file of contexts. The context stays. " +
			"Your browser may still be signed in at the identity provider: sign out there as well on a machine that " +
			"others use.",
		Example: "  heddle logout\n  heddle logout lab", Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(c.Context(), cli.CallTimeout)
			defer cancel()
			out, err := logOut(d, ctx, args)
			if out == nil {
				return err
			}
			return errors.Join(o.Print(d, out, func(w io.Writer) error {
				text := fmt.Sprintf("context %s: you are signed out", out.Context)
				if !out.Revoked {
					text += "; the identity provider takes nothing back: a copy of what renewed your sign-in counts " +
						"until it ends there"
				}
				_, err := fmt.Fprintln(w, text)
				return err
			}), err)
		},
	}
	o.Flag(c)
	return c
}

// LoggedOut is what "heddle logout" did.
type LoggedOut struct {
	Context string `json:"context"`
	// Revoked: nothing is left at the identity provider that would renew the sign-in.
	Revoked bool `json:"revoked"`
}

// logout forgets a token. Where it can't be withdrawn, it is forgotten all the same.
func logOut(d cli.Deps, ctx context.Context, args []string) (*LoggedOut, error) {
	path, err := contexts.Path(d.Getenv)
	if err != nil {
		return nil, err
	}
	file, unlock, err := contexts.Lock(ctx, path)
	if err != nil {
		return nil, err
	}
	defer unlock()
	name := file.Current
	if len(args) == 1 {
		name = args[0]
	}
	c, ok := file.Get(name)
	if !ok {
		return nil, cli.Usagef("there is no context %q: see heddle context list", name)
	}
	if c.SignIn == nil {
		return nil, cli.Usagef("you did not sign in at context %s: its token counts until an admin revokes it (heddle "+
			"context remove %s forgets it)", name, name)
	}
	told := withdraw(ctx, c)
	revoked, failed := takeBack(ctx, c)
	told = errors.Join(told, failed)
	c.Token, c.SignIn = "", nil
	if err := file.Save(); err != nil {
		return nil, errors.Join(err, told)
	}
	return &LoggedOut{name, revoked}, told
}

// withdraw has the controllers withdraw the token of a sign-in.
func withdraw(ctx context.Context, c *contexts.Context) error {
	if !cli.Lasts(c.SignIn, 0) {
		return nil
	}
	trust, err := c.Trust()
	if err == nil {
		err = api.NewRemoteFleet(api.Remote{URL: c.Controller, TLS: cli.ClientOf(trust), Token: c.Token}).SignOut(ctx)
	}
	if err != nil {
		return fmt.Errorf("the controller did not withdraw your token, which counts until %s: %w",
			c.SignIn.Expires.Local().Format(time.DateTime), err)
	}
	return nil
}

// takeBack has the identity provider take back what renews a sign-in. done: nothing is left there.
func takeBack(ctx context.Context, c *contexts.Context) (done bool, err error) {
	if c.SignIn.Refresh == "" {
		return true, nil
	}
	trust, err := c.Trust()
	if err != nil {
		return false, err
	}
	terms, err := api.NewRemoteFleet(api.Remote{URL: c.Controller, TLS: cli.ClientOf(trust)}).SignInTerms(ctx)
	if err == nil && terms.RevocationURL == "" {
		return false, nil
	}
	if err == nil {
		err = cli.ProviderOf(terms).Revoke(ctx, c.SignIn.Refresh)
	}
	if err != nil {
		return false, fmt.Errorf("what renews your sign-in was not taken back, and a copy of it counts until it ends "+
			"at the identity provider: %w", err)
	}
	return true, nil
}
