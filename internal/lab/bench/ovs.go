package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/safchain/ethtool"

	"heddle/internal/lab/netns"
)

const ovsSchema = "/usr/share/openvswitch/vswitch.ovsschema"

// setupOVS joins the guests by Open vSwitch's user-space datapath.
func setupOVS(ctx context.Context, p *path) error {
	if err := ovsTools(); err != nil {
		return err
	}
	host, err := p.hosted(peerOVS, nil)
	if err != nil {
		return err
	}
	for _, g := range []*guest{p.a, p.b} {
		if err := g.ns.Do(g.plainFrames); err != nil {
			return err
		}
	}
	return startOVS(ctx, p, host, bridgeOf("br0", portA, portB)...)
}

// ovsTools says which of Open vSwitch's programs is missing.
func ovsTools() error {
	for _, tool := range []string{"ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("%w: %s is not installed (package openvswitch-switch)", errUnavailable, tool)
		}
	}
	return nil
}

// bridgeOf are the arguments that make a bridge of the user-space datapath with these ports.
func bridgeOf(bridge string, ports ...string) []string {
	args := []string{"add-br", bridge, "--", "set", "bridge", bridge, "datapath_type=netdev"}
	for _, port := range ports {
		args = append(args, "--", "add-port", bridge, port)
	}
	return args
}

// plainFrames makes the guest compute checksums and cut segments itself: the user-space datapath reads its frames from
// a packet socket and forwards unfinished checksums as if they were finished.
func (g *guest) plainFrames() error {
	tool, err := ethtool.NewEthtool()
	if err != nil {
		return err
	}
	defer tool.Close()
	if err := tool.Change(g.device(), map[string]bool{"tx-checksum-ip-generic": false}); err != nil {
		return fmt.Errorf("turn off checksum offload of %s: %w", g.device(), err)
	}
	return nil
}

// startOVS runs an Open vSwitch of our own on a host, as the arguments of ovs-vsctl say: its database, sockets and logs
// are in a directory of its own, so that it does not touch another one on the machine.
func startOVS(ctx context.Context, p *path, host *netns.NS, made ...string) error {
	dir, err := os.MkdirTemp("", "hb-ovs-")
	if err != nil {
		return err
	}
	p.clean.add(func() error { return os.RemoveAll(dir) })
	m := machine{ns: host, env: []string{"OVS_RUNDIR=" + dir, "OVS_LOGDIR=" + dir, "OVS_DBDIR=" + dir,
		"OVS_SYSCONFDIR=" + dir}}
	daemon := func(name string, args ...string) error {
		d, err := m.start(name, args...)
		if err == nil {
			p.clean.add(d.end)
		}
		return err
	}
	db, socket := filepath.Join(dir, "conf.db"), "unix:"+filepath.Join(dir, "db.sock")
	vsctl := func(args ...string) error {
		return m.run(ctx, "ovs-vsctl", append([]string{"--db=" + socket, "--timeout=10"}, args...)...)
	}
	steps := []func() error{
		func() error { return m.run(ctx, "ovsdb-tool", "create", db, ovsSchema) },
		func() error {
			return daemon("ovsdb-server", "--remote=p"+socket, "--unixctl="+filepath.Join(dir, "db.ctl"), db)
		},
		func() error { return vsctl("--no-wait", "--retry", "init") }, // retries until the server listens
		func() error { return daemon("ovs-vswitchd", "--unixctl="+filepath.Join(dir, "vswitchd.ctl"), socket) },
		func() error { return vsctl(made...) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
