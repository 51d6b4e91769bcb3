package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"

	"connectrpc.com/connect/v2"
	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"heddle/internal/api"
	"heddle/internal/api/waitline"
	"heddle/internal/controller"
	"heddle/internal/controller/capability"
	"heddle/internal/controller/history"
	"heddle/internal/platform/access/signin"
	"heddle/internal/platform/snapshots"
	"heddle/internal/version"
)

// Where a controller has its things unless flags say otherwise.
const (
	defaultDir    = "/var/lib/heddle-controller"
	defaultSocket = "/run/heddle-controller/api.sock"
	defaultListen = ":7411"
)

// gcPercent is how much the heap grows, in percent of what is in use, before it is collected. Most of what a controller
// has are its connections, which stay: three quarters of Go's default of 100 take a ninth less memory, and no time that
// can be measured.
const gcPercent = 75

// Main runs the program with these capabilities and returns its exit status. release is the version of its package, if
// any.
func Main(release string, has capability.List) int {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := New(os.Stderr, release, has)
	if term.IsTerminal(int(os.Stderr.Fd())) && os.Getenv("TERM") != "dumb" {
		line := waitline.New(os.Stderr)
		ctx = api.WithWaits(ctx, line)
		root.SetOut(line.Before(os.Stdout))
	}
	root.SetArgs(os.Args[1:])
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "heddle-controller: "+plainly(err))
		return statusOf(err)
	}
	return 0
}

// plainly is an error without the code of the protocol, which says nothing to people.
func plainly(err error) string {
	if said, ok := err.(*connect.Error); ok {
		return said.Message()
	}
	return err.Error()
}

// New is the command tree of the program with these capabilities; release is the version of its package, if any.
func New(stderr io.Writer, release string, has capability.List) *cobra.Command {
	o := controller.Options{Version: runningVersion(release), Capabilities: has}
	var verbose, showVersion bool
	c := &cobra.Command{
		Use: "heddle-controller", Short: "Keep the definition of distributed switches for many hosts",
		Long: "Keep the definition of distributed switches for many hosts, and hand each host its part. Everything " +
			"is in one\ndirectory; etcd runs inside unless --etcd-endpoints names an existing cluster. Several " +
			"controllers make one\ncluster (\"heddle-controller join\"); three stand the loss of one. Hosts go on by " +
			"what they have while no controller\nanswers.\n\nPeople call it with \"heddle host\" and \"heddle " +
			"definition\" on the same machine.",
		Example: "  heddle-controller --advertise controller1.example:7411\n  heddle host token\n" +
			"  heddle definition apply -f fleet.yaml",
		SilenceUsage: true, SilenceErrors: true, Args: unknownCommand,
		RunE: func(c *cobra.Command, _ []string) error {
			if showVersion {
				_, err := fmt.Fprintln(c.OutOrStdout(), "heddle-controller", version.Of(release))
				return err
			}
			o.Log = logTo(stderr, verbose)
			if err := complete(&o); err != nil {
				return err
			}
			if o.PortLease < time.Second {
				return fmt.Errorf("--port-lease %s: give at least 1s", o.PortLease)
			}
			o.Ready = func() {
				if _, err := daemon.SdNotify(false, daemon.SdNotifyReady); err != nil {
					o.Log.Warn("tell the service manager that the controller is ready", "err", err)
				}
			}
			return controller.Run(c.Context(), o)
		},
	}
	runFlags(c.Flags(), &o)
	c.Flags().BoolVarP(&verbose, "verbose", "v", false, "log more")
	c.Flags().BoolVar(&showVersion, "version", false, "show the program's version")
	c.AddCommand(newStatus(), newToken(), newJoin(stderr, release), newList(), newRemove(), newSnapshot(),
		newRestore(stderr), newConfirm(), newFillHistory())
	c.SetFlagErrorFunc(badFlag)
	return c
}

func logTo(w io.Writer, verbose bool) *slog.Logger {
	level := slog.LevelInfo
	if verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
}

// runFlags are those by which a controller runs.
func runFlags(f *pflag.FlagSet, o *controller.Options) {
	dirFlag(f, &o.Dir)
	socketFlag(f, &o.Socket)
	f.StringVar(&o.Listen, "listen", defaultListen, "address for agents, HOST:PORT")
	f.StringVar(&o.Advertise, "advertise", "", "where agents find this controller, HOST:PORT (default: this\n"+
		"machine's name and the port of --listen)")
	f.StringVar(&o.API, "api-listen", "", "address for people and tools with a token, HOST:PORT, or \"off\"\n"+
		"(default: the host of --listen, and the port 32 above it: 7443)")
	f.StringVar(&o.Metrics, "metrics", "", "address on the loopback for Prometheus, such as 127.0.0.1:9947;\n"+
		"other machines read /metrics at --api-listen with a token")
	f.StringArrayVar(&o.AuditExport, "audit-export", nil, "send the audit log there as well, may be given several\n"+
		"times: "+
		"stdout, file:/PATH, syslog+udp://HOST, syslog+tcp://HOST,\n"+
		"syslog+tls://HOST?ca=FILE or https://HOST/PATH?token-file=FILE")
	f.StringVar(&o.ListenPeers, "listen-peers", "", "address for the other controllers, HOST:PORT (default: the host\n"+
		"of --listen and the port after its); none for a controller that\nstays alone")
	f.StringVar(&o.AdvertisePeers, "advertise-peers", "", "where the other controllers find this one, HOST:PORT\n"+
		"(default: the host of --advertise and the port of --listen-peers)")
	f.StringVar(&o.Controller, "name", "", "name of this controller, for people (default: the machine's)")
	f.Var(quota{&o.EtcdQuota}, "etcd-quota", "how large the database of the etcd inside may grow, such as 512MiB or\n"+
		"16GiB; the same for every controller (default 8GiB)")
	f.StringVar(&o.Name, "cluster-name", "heddle", "name of a new cluster, for people")
	f.DurationVar(&o.PortLease, "port-lease", time.Minute, "for how long a host that has lost its controllers holds\n"+
		"its static ports: another one gets them only by force (at least 1s)")
	signInFlags(f, &o.SignIn)
	f.Int64Var(&o.History.Changes, "history-changes", history.DefaultKeep().Changes,
		"how many changes of the definition "+
			"are kept at least; 0 for none")
	f.DurationVar(&o.History.Time, "history-time", 0, "after what time changes are no longer kept, such as 8760h;\n0 "+
		"for never")
	snapshotFlags(f, &o.Snapshots)
	etcdFlags(f, &o.Outside)
}

// snapshotFlags are those of snapshots by schedule.
func snapshotFlags(f *pflag.FlagSet, s *snapshots.Schedule) {
	f.StringVar(&s.Dir, "snapshot-dir", "", "directory for snapshots by schedule, best on another disk; \"\" for none")
	f.DurationVar(&s.Every, "snapshot-every", snapshots.DefaultEvery, "how often one is taken")
	f.IntVar(&s.Keep, "snapshot-keep", snapshots.DefaultKeep, "how many are kept at most")
	f.DurationVar(&s.Age, "snapshot-age", 0, "after what time one is removed, such as 720h; 0 for never. The newest\n"+
		"always stays")
}

func dirFlag(f *pflag.FlagSet, dir *string) {
	f.StringVar(dir, "data-dir", defaultDir, "directory for all that the controller keeps")
}

func socketFlag(f *pflag.FlagSet, socket *string) {
	f.StringVar(socket, "socket", defaultSocket, "socket for people and tools on this machine; root alone may use it")
}

// signInFlags are those of the identity provider.
func signInFlags(f *pflag.FlagSet, c *signin.Config) {
	f.StringVar(&c.Issuer, "oidc-issuer", "", "OpenID Connect provider by which people sign in (heddle login),\n"+
		"https://HOST/PATH; the same at every controller, as all --oidc flags")
	f.StringVar(&c.ClientID, "oidc-client-id", "", "as what the provider knows Heddle: a public client,\n"+
		"without a secret")
	f.StringVar(&c.CA, "oidc-ca", "", "file with the authorities of the provider's certificate, in PEM form\n"+
		"(default: the machine's)")
	f.StringVar(&c.NameClaim, "oidc-name-claim", signin.DefaultNameClaim, "claim that names the person; an email "+
		"counts only where\nthe provider has verified it")
	f.StringVar(&c.GroupsClaim, "oidc-groups-claim", signin.DefaultGroupsClaim, "claim that lists the person's groups")
	f.StringVar(&c.GroupsPrefix, "oidc-groups-prefix", signin.DefaultGroupsPrefix, "what is put before each group, "+
		"so that none of the\nprovider's passes for a local one")
	f.StringSliceVar(&c.Scopes, "oidc-scopes", []string{"email", "profile", "offline_access"}, "scopes that are "+
		"asked for at sign-in, besides openid")
	f.DurationVar(&c.Life, "oidc-session", signin.DefaultLife, "how long a sign-in counts before it is renewed, "+
		"within 5m and 24h")
}

// etcdFlags are those of an existing etcd cluster.
func etcdFlags(f *pflag.FlagSet, e *controller.Outside) {
	f.StringSliceVar(&e.Endpoints, "etcd-endpoints", nil, "endpoints of an existing etcd cluster, https://HOST:PORT")
	f.StringVar(&e.CA, "etcd-ca", "", "file with the authorities of that cluster (default: the machine's)")
	f.StringVar(&e.Cert, "etcd-cert", "", "file with this controller's certificate for it")
	f.StringVar(&e.Key, "etcd-key", "", "file with the key of that certificate")
	f.StringVar(&e.User, "etcd-user", "", "user there")
	f.StringVar(&e.PasswordFile, "etcd-password-file", "", "file with the user's password, which others may not read")
	f.StringVar(&e.Prefix, "etcd-prefix", "/heddle/", "what all keys begin with; another one for each Heddle cluster")
}

// complete is what flags leave open.
func complete(o *controller.Options) (err error) {
	if err := o.Snapshots.Check(); err != nil {
		return err
	}
	if o.EtcdQuota > 0 && len(o.Outside.Endpoints) > 0 {
		return errors.New("--etcd-quota is for the etcd inside of the controller: the one of --etcd-endpoints has " +
			"its own, --quota-backend-bytes")
	}
	if o.API, err = apiAddress(o.API, o.Listen); err != nil {
		return err
	}
	if o.Advertise == "" {
		o.Advertise, err = advertised(o.Listen)
	}
	return err
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

// apiAbove is how far the port for people and tools is above that for agents, unless somebody says.
const apiAbove = 32

// apiAddress is where people and tools are answered; "" for nowhere.
func apiAddress(given, listen string) (string, error) {
	if given == "off" {
		return "", nil
	}
	if given != "" {
		if _, _, err := net.SplitHostPort(given); err != nil {
			return "", fmt.Errorf("--api-listen %s: give HOST:PORT, or \"off\": %w", given, err)
		}
		return given, nil
	}
	host, text, err := net.SplitHostPort(listen)
	if err != nil {
		return "", fmt.Errorf("--listen %s: %w", listen, err)
	}
	port, err := net.LookupPort("tcp", text)
	if err != nil || port+apiAbove > 65535 {
		return "", fmt.Errorf("--listen %s: say with --api-listen where people and tools are answered", listen)
	}
	if port > 0 { // 0 is any that is free
		port += apiAbove
	}
	return net.JoinHostPort(host, strconv.Itoa(port)), nil
}

// runningVersion is what a controller says of itself to the others and in its log.
func runningVersion(release string) string {
	v := version.Of(release)
	return v.Version + " " + v.Go
}
