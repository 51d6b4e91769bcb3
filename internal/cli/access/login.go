package access

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/cli/contexts"
	"heddle/internal/cli/signin"
	"heddle/internal/identity"
	"heddle/internal/spec/printable"
)

// signInTime is how long somebody may take to sign in.
const signInTime = 10 * time.Minute

// loginFlags are those of "heddle login".
type loginFlags struct {
	ca                string
	device, noBrowser bool
	port              uint16
}

func NewLogin(d cli.Deps) *cobra.Command {
	o, q := &cli.Output{}, &loginFlags{}
	c := &cobra.Command{
		Use: "login [CONTEXT [URL]]", Short: "Sign in at the controllers by your identity provider",
		Long: "Sign in at the controllers by the identity provider that they name (OpenID Connect). A browser opens; " +
			"where there is none, --device shows a code that you type into one elsewhere. What you get is kept in " +
			"your file of contexts, which you alone may read, and is renewed while the provider lets you. With URL, " +
			"https://HOST:PORT, the context is added, and --ca says by what the controller is known: the fingerprint " +
			"of its authority, or a file with its certificate.",
		Example: "  heddle login\n  heddle login lab https://c1:7443 --ca sha256:5f…\n  heddle login lab --device",
		Args:    cobra.MaximumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(c.Context(), signInTime)
			defer cancel()
			out, err := logIn(d, ctx, args, q)
			if out == nil {
				return err
			}
			return errors.Join(o.Print(d, out, func(w io.Writer) error {
				text := fmt.Sprintf("context %s: you are %s until %s", out.Context, out.Name, untilText(out.Expires,
					time.Now()))
				if len(out.Groups) > 0 {
					text += ", in " + strings.Join(out.Groups, ", ")
				}
				if !out.Renews {
					text += "; it can't be renewed: the identity provider gave nothing for that (scope offline_access)"
				}
				_, err := fmt.Fprintln(w, printable.Text(text))
				return err
			}), err)
		},
	}
	f := c.Flags()
	f.StringVar(&q.ca, "ca", d.Getenv(cli.CAVar),
		"with URL: fingerprint of the controllers' authority, or a file with "+
			"its certificate (environment "+cli.CAVar+")")
	f.BoolVar(&q.device, "device", false, "show a code for a browser on another machine")
	f.BoolVar(&q.noBrowser, "no-browser", false, "show the address, and open no browser")
	f.Uint16Var(&q.port, "port", 0, "port on 127.0.0.1 to which the browser comes back; 0 for any")
	o.Flag(c)
	return c
}

// LoggedIn is what "heddle login" did.
type LoggedIn struct {
	Context string    `json:"context"`
	Name    string    `json:"name"`
	Groups  []string  `json:"groups"`
	Issuer  string    `json:"issuer"`
	Expires time.Time `json:"expires"`
	// Renews: the provider gave what renews the sign-in.
	Renews bool `json:"renews"`
}

// door is a controller at which somebody signs in.
type door struct {
	contexts.Context
	conf *tls.Config
	// shown is of which cluster a new controller says it is; nil for one that is known.
	shown *identity.ClusterID
}

// doorOf is where somebody signs in: a context of theirs, or a new one.
func doorOf(file *contexts.File, args []string, ca string) (*door, error) {
	if len(args) == 2 {
		url, err := contexts.URL(args[1])
		if err != nil {
			return nil, &cli.UsageError{Err: err}
		}
		conf, err := cli.Pinned(ca)
		if err != nil {
			return nil, err
		}
		return &door{contexts.Context{Name: args[0], Controller: url}, conf, shownRoots(conf)}, nil
	}
	name := file.Current
	if len(args) == 1 {
		name = args[0]
	}
	c, ok := file.Get(name)
	if !ok {
		return nil,
			cli.Usagef("there is no context %q: give its name and where a controller answers: heddle login NAME "+
				"https://HOST:PORT --ca FINGERPRINT", name)
	}
	trust, err := c.Trust()
	if err != nil {
		return nil, err
	}
	return &door{*c, cli.ClientOf(trust), nil}, nil
}

func logIn(d cli.Deps, ctx context.Context, args []string, q *loginFlags) (*LoggedIn, error) {
	file, err := userContexts(d)
	if err != nil {
		return nil, err
	}
	at, err := doorOf(file, args, q.ca)
	if err != nil {
		return nil, err
	}
	fleet := api.NewRemoteFleet(api.Remote{URL: at.Controller, TLS: at.conf})
	terms, err := fleet.SignInTerms(ctx)
	if err != nil {
		return nil, err
	}
	// What renewed the sign-in before is taken back first: a provider may end with it all that a person has there.
	former, left := formerOf(ctx, file, at.Name)
	got, err := prove(d, ctx, cli.ProviderOf(terms), q)
	if err != nil {
		return nil, err
	}
	in, err := fleet.SignIn(ctx, got.IDToken, got.Nonce)
	if err != nil {
		return nil, err
	}
	if at.shown != nil {
		at.Cluster, at.Roots = in.Trust.Cluster, in.Trust.Roots
		if *at.shown != identity.ClusterID(at.Cluster) {
			return nil, fmt.Errorf("the controller at %s is of cluster %s, and says it is of %s", at.Controller,
				*at.shown, at.Cluster)
		}
	}
	at.Token, at.TokenFile = in.Token, ""
	at.SignIn = &contexts.SignIn{Expires: in.Expires, Refresh: got.Refresh, Nonce: got.Nonce}
	file, unlock, err := contexts.Lock(ctx, file.Where())
	if err != nil {
		return nil, err
	}
	defer unlock()
	file.Put(at.Context)
	if err := file.Save(); err != nil {
		return nil, err
	}
	out := &LoggedIn{at.Name, in.Name, in.Groups, terms.Issuer, in.Expires, got.Refresh != ""}
	if former != nil {
		left = errors.Join(left, withdraw(ctx, former))
	}
	if left != nil {
		left = fmt.Errorf("you are signed in, and your sign-in before it has not ended: %w", left)
	}
	return out, left
}

// formerOf is the context as somebody is signed in by it, nil for none; what renewed that is taken back, or left says
// why not.
func formerOf(ctx context.Context, file *contexts.File, name string) (former *contexts.Context, left error) {
	c, ok := file.Get(name)
	if !ok || c.SignIn == nil {
		return nil, nil
	}
	former = new(*c)
	_, left = takeBack(ctx, former)
	return former, left
}

// prove has somebody sign in at their identity provider.
func prove(d cli.Deps, ctx context.Context, p *signin.Provider, q *loginFlags) (*signin.Got, error) {
	if q.device {
		return p.ByDevice(ctx, func(a signin.Prompt) error {
			text := fmt.Sprintf("Open %s in a browser, and type %s\n", printable.Text(a.URL), printable.Text(a.Code))
			if a.Whole != "" {
				text += "or open " + printable.Text(a.Whole) + "\n"
			}
			_, err := io.WriteString(d.Stderr, text)
			return err
		})
	}
	return p.ByBrowser(ctx, int(q.port), func(url string) error {
		opened := !q.noBrowser && browse(d, url)
		text := "Open this address in a browser on this machine (--device is for another one):\n"
		if opened {
			text = "A browser opens; if it does not, open this address:\n"
		}
		_, err := fmt.Fprintf(d.Stderr, "%s  %s\n", text, printable.Text(url))
		return err
	})
}

// browse opens a browser where there is a desktop.
func browse(d cli.Deps, url string) bool {
	if d.Getenv("DISPLAY")+d.Getenv("WAYLAND_DISPLAY") == "" {
		return false
	}
	c := exec.Command("xdg-open", url)
	if c.Start() != nil {
		return false
	}
	go func() { _ = c.Wait() }() // whatever becomes of it: the address is shown as well
	return true
}
