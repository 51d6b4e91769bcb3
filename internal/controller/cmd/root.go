// Package cmd is the command tree of the heddle-controller program.
package cmd

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"

	"heddle/internal/controller"
)

// Where a controller has its things unless flags say otherwise.
const (
	defaultDir    = "/var/lib/heddle-controller"
	defaultSocket = "/run/heddle-controller/api.sock"
	defaultListen = ":7411"
)

// Main runs the program and returns its exit status.
func Main() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := New(os.Stderr)
	root.SetArgs(os.Args[1:])
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "heddle-controller: "+err.Error())
		return 1
	}
	return 0
}

// New is the program's command tree.
func New(stderr io.Writer) *cobra.Command {
	var o controller.Options
	var verbose, showVersion bool
	c := &cobra.Command{
		Use: "heddle-controller", Short: "Keep the definition of distributed switches for many hosts",
		Long: "Keep the definition of distributed switches for many hosts, and hand each host its part. Everything " +
			"is in " +
			"one\ndirectory; etcd runs inside unless --etcd-endpoints names an existing cluster. Hosts go on by what " +
			"they " +
			"have while\nno controller answers.\n\nPeople call it with \"heddle host\" and \"heddle definition\" on " +
			"the same " +
			"machine.",
		Example: "  heddle-controller --advertise controller1.example:7411\n  heddle host token\n" +
			"  heddle definition apply -f fleet.yaml",
		SilenceUsage: true, SilenceErrors: true, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if showVersion {
				_, err := fmt.Fprintln(c.OutOrStdout(), "heddle-controller "+version())
				return err
			}
			level := slog.LevelInfo
			if verbose {
				level = slog.LevelDebug
			}
			o.Log = slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level}))
			if o.Advertise == "" {
				var err error
				if o.Advertise, err = advertised(o.Listen); err != nil {
					return err
				}
			}
			o.Ready = func() {
				if _, err := daemon.SdNotify(false, daemon.SdNotifyReady); err != nil {
					o.Log.Warn("tell the service manager that the controller is ready", "err", err)
				}
			}
			return controller.Run(c.Context(), o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.Dir, "data-dir", defaultDir, "directory for all that the controller keeps")
	f.StringVar(&o.Listen, "listen", defaultListen, "address for agents, HOST:PORT")
	f.StringVar(&o.Advertise, "advertise", "", "where agents find this controller, HOST:PORT (default: this\n"+
		"machine's name and the port of --listen)")
	f.StringVar(&o.Socket, "socket", defaultSocket,
		"socket for people and tools on this machine; root alone may use it")
	f.StringVar(&o.Name, "cluster-name", "heddle", "name of a new cluster, for people")
	f.StringSliceVar(&o.Endpoints, "etcd-endpoints", nil, "endpoints of an existing etcd cluster")
	f.BoolVarP(&verbose, "verbose", "v", false, "log more")
	f.BoolVar(&showVersion, "version", false, "show the program's version")
	return c
}

// advertised is where agents find a controller that listens there.
func advertised(listen string) (string, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", fmt.Errorf("--listen %s: %w", listen, err)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		if host, err = os.Hostname(); err != nil {
			return "", err
		}
	}
	return net.JoinHostPort(host, port), nil
}

// version is what "heddle version" says of the other program: the module's version, and Go's.
func version() string {
	v := "(devel)"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		v = info.Main.Version
	}
	return v + " " + runtime.Version()
}
