package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/controller"
)

// callTime bounds a call of a controller.
const callTime = time.Minute

// there is the controller on this machine, as commands call it, and how they print.
type there struct{ socket, output string }

func (t *there) flags(c *cobra.Command) {
	socketFlag(c.Flags(), &t.socket)
	c.Flags().StringVarP(&t.output, "output", "o", "text", "text or json")
}

// ask calls the controller and prints the answer.
func ask[T any](c *cobra.Command, t *there, do func(context.Context, *api.Fleet) (T, error),
	text func(io.Writer, T) error) error {
	if t.output != "text" && t.output != "json" {
		return fmt.Errorf("-o %s: use text or json", t.output)
	}
	ctx, cancel := context.WithTimeout(c.Context(), callTime)
	defer cancel()
	out, err := do(ctx, api.NewFleet(t.socket))
	if err != nil {
		return notThere(err, t.socket)
	}
	return t.print(c.OutOrStdout(), out, func(w io.Writer) error { return text(w, out) })
}

func (t *there) print(w io.Writer, out any, text func(io.Writer) error) error {
	if t.output == "json" {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(out)
	}
	return text(w)
}

func printNotes(w io.Writer, notes []string) error {
	for _, n := range notes {
		if _, err := fmt.Fprintln(w, "note: "+n); err != nil {
			return err
		}
	}
	return nil
}

func newToken() *cobra.Command {
	t := &there{}
	q := api.ControllerTerms{}
	c := &cobra.Command{
		Use: "token", Short: "Make a token by which one controller may join the cluster of this one",
		Long: "Make a token by which one controller may join the cluster of this one. It is shown this once and " +
			"can be used\nonce. Whoever uses it gets what signs the cluster's certificates: keep it for minutes, " +
			"and send it by a way that\nnobody reads.",
		Example: "  heddle-controller token\n  heddle-controller token --lasts 10m", Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if q.Lasts <= 0 {
				return fmt.Errorf("--lasts %s: a token can be used for some time, such as 10m", q.Lasts)
			}
			return ask(c, t, func(ctx context.Context, f *api.Fleet) (*api.JoinToken, error) {
				return f.ControllerToken(ctx, q)
			}, func(w io.Writer, token *api.JoinToken) error {
				_, err := fmt.Fprintln(w, token.Token)
				return err
			})
		},
	}
	c.Flags().DurationVar(&q.Lasts, "lasts", time.Hour, "how long the token can be used")
	t.flags(c)
	return c
}

func newJoin(stderr io.Writer, release string) *cobra.Command {
	o := controller.Options{Version: runningVersion(release)}
	var token, file, output string
	c := &cobra.Command{
		Use: "join HOST:PORT", Short: "Make the controller on this machine part of another one's cluster",
		Long: "Make the controller on this machine part of the cluster of the controller at HOST:PORT. The token is " +
			"made there\n(\"heddle-controller token\"); it is used up. A controller that runs here, and has no hosts " +
			"and no definition yet,\nstarts anew as part of that cluster. Where none runs, the data directory is " +
			"made ready and the next start joins; the\nflags are those of that start then.",
		Example: "  heddle-controller join controller1.example:7411 --token hc1.…\n" +
			"  heddle-controller join controller1.example:7411 --token-file /root/token",
		Args: exactly("HOST:PORT"),
		RunE: func(c *cobra.Command, args []string) error {
			t := &there{o.Socket, output}
			text, err := tokenOf(c.InOrStdin(), token, file)
			if err != nil {
				return err
			}
			o.Log = logTo(stderr, false)
			if err := complete(&o); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(c.Context(), callTime)
			defer cancel()
			out, err := join(ctx, o, controller.Join{Controller: args[0], Token: text, Name: o.Controller})
			if err != nil {
				return err
			}
			return t.print(c.OutOrStdout(), out, func(w io.Writer) error { return printJoined(w, out) })
		},
	}
	runFlags(c.Flags(), &o)
	c.Flags().StringVar(&token, "token", os.Getenv("HEDDLE_TOKEN"), "the token (environment HEDDLE_TOKEN)")
	c.Flags().Lookup("token").DefValue = ""
	c.Flags().StringVar(&file, "token-file", "", "file with the token; - for the standard input")
	c.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	return c
}

// tokenOf is the token as it was given.
func tokenOf(stdin io.Reader, token, file string) (string, error) {
	var text []byte
	var err error
	switch file {
	case "":
		text = []byte(token)
	case "-":
		text, err = io.ReadAll(io.LimitReader(stdin, 4096))
	default:
		text, err = os.ReadFile(file)
	}
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	if len(strings.TrimSpace(string(text))) == 0 {
		return "", errors.New("--token is needed: make one at a controller of the cluster with \"heddle-controller " +
			"token\"")
	}
	return string(text), nil
}

// join joins by the controller that runs here, or for the one that will.
func join(ctx context.Context, o controller.Options, j controller.Join) (*controller.Joined, error) {
	if !controller.Answers(o.Socket) {
		return controller.JoinOffline(ctx, o, j)
	}
	f := api.NewFleet(o.Socket)
	out, err := f.JoinCluster(ctx, api.JoinCluster{Controller: j.Controller, Token: j.Token, Name: j.Name})
	if err != nil {
		return nil, err
	}
	for { // until it is there
		list, err := f.Controllers(ctx)
		if err == nil && list.Cluster == out.Cluster {
			return &controller.Joined{Cluster: out.Cluster, Name: out.Name, Started: true, Notes: list.Notes}, nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return nil, fmt.Errorf("the controller has joined cluster %s and does not answer yet: see its log",
				out.Cluster)
		}
	}
}

func printJoined(w io.Writer, j *controller.Joined) error {
	text := fmt.Sprintf("this controller is %s of cluster %s", j.Name, j.Cluster)
	if !j.Started {
		text += ": start it"
	}
	if _, err := fmt.Fprintln(w, text); err != nil {
		return err
	}
	return printNotes(w, j.Notes)
}

func newList() *cobra.Command {
	t := &there{}
	c := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the controllers of the cluster",
		Long: "List the controllers of the cluster. ROLE is leader, voter or learner (it has no vote yet); none " +
			"where it is no\nmember of etcd. STATE is up, stale (it is cut off from the majority) or unreachable. " +
			"HOSTS is how many are\nconnected to it, LAG how many entries of the cluster's log it has yet to apply.",
		Example: "  heddle-controller list\n  heddle-controller list -o json", Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			return ask(c, t, func(ctx context.Context, f *api.Fleet) (*api.ControllerList, error) {
				return f.Controllers(ctx)
			}, printControllers)
		},
	}
	t.flags(c)
	return c
}

func printControllers(w io.Writer, list *api.ControllerList) error {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "CONTROLLER\tADDRESS\tROLE\tSTATE\tHOSTS\tLAG\tPROBLEM")
	for _, r := range list.Controllers {
		name, problem := r.Name, r.Problem
		if r.Self {
			name += " *"
		}
		if problem == "" {
			problem = "-"
		}
		hosts, lag := strconv.Itoa(r.Hosts), strconv.FormatUint(r.Lag, 10)
		if r.State == "unreachable" {
			hosts, lag = "-", "-"
		}
		fmt.Fprintln(tab, strings.Join([]string{name, r.Address, r.Role, r.State, hosts, lag, problem}, "\t"))
	}
	return errors.Join(tab.Flush(), printNotes(w, list.Notes))
}

func newRemove() *cobra.Command {
	t := &there{}
	c := &cobra.Command{
		Use: "remove CONTROLLER", Aliases: []string{"rm"}, Short: "Take a controller out of the cluster",
		Long: "Take a controller out of the cluster, also one that is lost: it has no vote any more, no host and no " +
			"controller\nanswers its certificate, and its hosts go to the others. To take one out that runs, stop it " +
			"afterwards.",
		Example: "  heddle-controller remove controller3", Args: exactly("CONTROLLER"),
		RunE: func(c *cobra.Command, args []string) error {
			return ask(c, t, func(ctx context.Context, f *api.Fleet) (*api.RemovedController, error) {
				return f.RemoveController(ctx, args[0])
			}, func(w io.Writer, out *api.RemovedController) error {
				if _, err := fmt.Fprintf(w, "controller %s is no longer part of the cluster\n", args[0]); err != nil {
					return err
				}
				return printNotes(w, out.Notes)
			})
		},
	}
	t.flags(c)
	return c
}

// SnapshotFile is a snapshot that was taken.
type SnapshotFile struct {
	File string `json:"file"`
	Size int64  `json:"sizeBytes"`
}

func newSnapshot() *cobra.Command {
	t := &there{}
	c := &cobra.Command{
		Use: "snapshot FILE", Short: "Save the cluster's state in a file",
		Long: "Save the cluster's whole state, as of one revision, in a file that only its owner may read. The " +
			"authority's key in it\nis sealed; what opens it, the file \"secret\" of the data directory, is not in " +
			"it: keep a copy of that in another\nplace.",
		Example: "  heddle-controller snapshot /var/backups/heddle.db", Args: exactly("FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			out := SnapshotFile{File: args[0]}
			return ask(c, t, func(ctx context.Context, f *api.Fleet) (_ *SnapshotFile, err error) {
				out.Size, err = save(args[0], func(w io.Writer) (int64, error) { return f.Snapshot(ctx, w) })
				return &out, err
			}, func(w io.Writer, out *SnapshotFile) error {
				_, err := fmt.Fprintf(w, "%s has the cluster's state (%d bytes)\n", out.File, out.Size)
				return err
			})
		},
	}
	t.flags(c)
	return c
}
