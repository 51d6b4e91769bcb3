package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/safchain/ethtool"

	"heddle/internal/netns"
)

const ovsSchema = "/usr/share/openvswitch/vswitch.ovsschema"

// ovsInstance is an Open vSwitch of our own: its database, sockets and logs are in one directory, so that it meets no other
// one on the machine.
type ovsInstance struct {
	dir  string
	host *netns.NS
}

// setupOVS joins the guests by Open vSwitch's user-space datapath.
func setupOVS(ctx context.Context, p *path) error {
	for _, tool := range []string{"ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("%w: %s is not installed (package openvswitch-switch)", errUnavailable, tool)
		}
	}
	host, err := p.hosted(peerOVS, nil)
	if err != nil {
		return err
	}
	for _, g := range []*guest{p.a, p.b} {
		if err := g.ns.Do(plainFrames); err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp("", "hb-ovs-")
	if err != nil {
		return err
	}
	p.clean.add(func() error { return os.RemoveAll(dir) })
	o := &ovsInstance{dir: dir, host: host}
	return o.start(ctx, p)
}

// plainFrames makes the guest compute checksums and cut segments itself: the user-space datapath reads its frames from a
// packet socket and passes on what the kernel has left undone as if it were done.
func plainFrames() error {
	tool, err := ethtool.NewEthtool()
	if err != nil {
		return err
	}
	defer tool.Close()
	if err := tool.Change(guestDev, map[string]bool{"tx-checksum-ip-generic": false}); err != nil {
		return fmt.Errorf("turn off checksum offload of %s: %w", guestDev, err)
	}
	return nil
}

func (o *ovsInstance) start(ctx context.Context, p *path) error {
	db, socket := filepath.Join(o.dir, "conf.db"), "unix:"+filepath.Join(o.dir, "db.sock")
	if err := o.run(ctx, "ovsdb-tool", "create", db, ovsSchema); err != nil {
		return err
	}
	err := o.daemon(p, "ovsdb-server", "--remote=p"+socket, "--unixctl="+filepath.Join(o.dir, "db.ctl"), db)
	if err != nil {
		return err
	}
	vsctl := func(args ...string) error {
		return o.run(ctx, "ovs-vsctl", append([]string{"--db=" + socket, "--timeout=10"}, args...)...)
	}
	// ovs-vsctl retries until the server listens.
	if err := vsctl("--no-wait", "--retry", "init"); err != nil {
		return err
	}
	if err := o.daemon(p, "ovs-vswitchd", "--unixctl="+filepath.Join(o.dir, "vswitchd.ctl"), socket); err != nil {
		return err
	}
	return vsctl("add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=netdev",
		"--", "add-port", "br0", portA, "--", "add-port", "br0", portB)
}

// command prepares a program of the instance, in a process group of its own so that Ctrl-C leaves its end to us.
func (o *ovsInstance) command(ctx context.Context, name string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "OVS_RUNDIR="+o.dir, "OVS_LOGDIR="+o.dir, "OVS_DBDIR="+o.dir, "OVS_SYSCONFDIR="+o.dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	return cmd, &out
}

func (o *ovsInstance) run(ctx context.Context, name string, args ...string) error {
	cmd, out := o.command(ctx, name, args...)
	err := o.host.Start(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(out.String()))
	}
	return nil
}

// stopPatience is how long a daemon may take to end before it is killed.
const stopPatience = 3 * time.Second

// daemon starts a program that goes with the path.
func (o *ovsInstance) daemon(p *path, name string, args ...string) error {
	ctx, stop := context.WithCancel(context.Background())
	cmd, out := o.command(ctx, name, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopPatience
	if err := o.host.Start(cmd); err != nil {
		stop()
		return fmt.Errorf("start %s: %w", name, err)
	}
	p.clean.add(func() error {
		stop()
		var exit *exec.ExitError
		if err := cmd.Wait(); err != nil && !errors.As(err, &exit) && !errors.Is(err, context.Canceled) {
			return fmt.Errorf("stop %s: %w: %s", name, err, strings.TrimSpace(out.String()))
		}
		return nil
	})
	return nil
}
