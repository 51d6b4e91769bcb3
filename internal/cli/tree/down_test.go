package tree

import (
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"heddle/internal/agent/state"
	"heddle/internal/cli"
	"heddle/internal/lab/netns"
	"heddle/internal/plan"
	"heddle/internal/test/testkit"
)

// The dry run lists what would go, and has the status by which a script knows that somebody is connected.
func TestS182_ADryRunHasTheStatusForConnections(t *testing.T) {
	here, guest := testkit.NS(t, "down"), testkit.NS(t, "guest")
	for _, line := range []string{"link add vmk9 type veth peer name eth0 netns " + guest.Name, "link set vmk9 up",
		"addr add 198.51.100.1/24 dev vmk9", "-n " + guest.Name + " link set eth0 up",
		"-n " + guest.Name + " addr add 198.51.100.10/24 dev eth0"} {
		if out, err := here.Output("ip", strings.Fields(line)...); err != nil {
			t.Fatalf("ip %s: %v\n%s", line, err, out)
		}
	}
	c := newConsole(t, &standIn{})
	states := t.TempDir()
	store, err := state.Open(filepath.Join(states, "test"))
	if err != nil {
		t.Fatal(err)
	}
	st, err := store.Load()
	if err != nil {
		t.Fatal(err)
	}
	st.Pairs = []state.Pair{{ID: plan.PortID{Switch: "lab", Name: "vmk9"}, Host: "vmk9", End: "hdl-9",
		Put: []netip.Prefix{netip.MustParsePrefix("198.51.100.1/24")}}}
	if err := store.Save(st); err != nil {
		t.Fatal(err)
	}
	down := func(flags ...string) (out, errs string, status int) {
		t.Helper()
		err := here.Do(func() error {
			out, errs, status = c.run(append([]string{"down", "--dry-run", "--state-dir", states}, flags...)...)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return out, errs, status
	}
	const line = "host interface vmk9 is removed, and with it 198.51.100.1/24"
	if out, errs, status := down(); status != cli.ExitOK || errs != "" || !strings.Contains(out, line) {
		t.Errorf("nobody is connected: status %d\n%s%s", status, out, errs)
	}
	connectTCP(t, here, guest)
	out, errs, status := down()
	if status != cli.ExitConnected || !strings.Contains(out, line) ||
		!strings.Contains(errs, "1 connection to this host ends (198.51.100.10:") {
		t.Errorf("somebody is connected: status %d, want %d\n%s%s", status, cli.ExitConnected, out, errs)
	}
	if out, errs, status := down("--yes"); status != cli.ExitOK || errs != "" || !strings.Contains(out, line) {
		t.Errorf("agreed to: status %d\n%s%s", status, out, errs)
	}
	out, _, status = down("-o", "json")
	if status != cli.ExitConnected || !strings.Contains(out, `"198.51.100.10:`) {
		t.Errorf("in JSON: status %d\n%s", status, out)
	}
}

// connectTCP connects the guest to the host by TCP until the test ends.
func connectTCP(t *testing.T, host, guest *netns.NS) {
	t.Helper()
	var l net.Listener
	err := host.Do(func() (err error) { l, err = net.Listen("tcp", "198.51.100.1:0"); return err })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	address := l.Addr().(*net.TCPAddr)
	var c *net.TCPConn
	err = guest.Do(func() (err error) { c, err = net.DialTCP("tcp", nil, address); return err })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { accepted.Close() })
}
