package fleet

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"heddle/internal/lab/netns"
	"heddle/internal/test/testkit"
)

// virtualAddress is the one that two guests share.
const virtualAddress = "10.0.0.100"

// keepalivedText is the configuration of a guest that takes the virtual address over when the other one is silent.
const keepalivedText = `
global_defs {
  router_id guest%d
  vrrp_version 3
}
vrrp_instance shared {
  state BACKUP
  nopreempt
  interface eth0
  virtual_router_id 7
  priority %d
  advert_int 0.2
  virtual_ipaddress { ` + virtualAddress + `/24 dev eth0 }
}
`

// virtualRig is a fleet with two guests that share an address, on two hosts, and a client on the third one.
type virtualRig struct {
	*fleet
	guests []*netns.NS // those that share it, and the client
	macs   [][6]byte
}

func newVirtualRig(t *testing.T) *virtualRig {
	t.Helper()
	testkit.Tool(t, "keepalived")
	r := &virtualRig{fleet: newOverlayFleet(t, 3, segmentText)}
	for n, h := range r.hosts {
		ns, mac := testkit.NS(t, fmt.Sprintf("va%d", n)), fleetMAC(n, 8)
		h.PlugInto(ns, "p-va", mac)
		h.must("port", "connect", "p-va", "--switch", "dvs", "--port-group", "web", "--device", "p-va")
		h.Up("p-va")
		r.guests, r.macs = append(r.guests, ns), append(r.macs, mac)
		r.in(ns, "ip", "addr", "add", fmt.Sprintf("10.0.0.%d/24", 1+n), "dev", "eth0")
	}
	for n := range 2 {
		r.keepalived(n)
	}
	return r
}

func (r *virtualRig) in(ns *netns.NS, args ...string) string {
	r.t.Helper()
	out, err := ns.Output(args[0], args[1:]...)
	if err != nil {
		r.t.Fatalf("%s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// keepalived runs in a guest until the test ends.
func (r *virtualRig) keepalived(n int) {
	r.t.Helper()
	dir := r.t.TempDir()
	file := filepath.Join(dir, "keepalived.conf")
	if err := os.WriteFile(file, fmt.Appendf(nil, keepalivedText, n, 200-50*n), 0o600); err != nil {
		r.t.Fatal(err)
	}
	cmd := exec.Command("keepalived", "--dont-fork", "--log-console", "--vrrp", "--use-file", file, "--pid",
		filepath.Join(dir, "pid"), "--vrrp_pid", filepath.Join(dir, "vrrp"))
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := r.guests[n].Start(cmd); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			r.t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			r.t.Logf("keepalived: %v", err)
		}
		if r.t.Failed() {
			r.t.Logf("keepalived of guest %d said:\n%s", n, said.String())
		}
	})
}

// has reports whether a guest has the virtual address.
func (r *virtualRig) has(n int) bool {
	r.t.Helper()
	return strings.Contains(r.in(r.guests[n], "ip", "-4", "addr", "show", "dev", "eth0"), virtualAddress+"/")
}

// reached: the client comes to the address by this guest, having asked anew who has it.
func (r *virtualRig) reached(n int) bool {
	r.t.Helper()
	client := r.guests[2]
	r.in(client, "ip", "neigh", "flush", "dev", "eth0")
	if _, err := client.Output("ping", "-n", "-c", "1", "-W", "1", virtualAddress); err != nil {
		return false
	}
	mac := fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", r.macs[n][0], r.macs[n][1], r.macs[n][2], r.macs[n][3],
		r.macs[n][4], r.macs[n][5])
	return strings.Contains(r.in(client, "ip", "neigh", "show", virtualAddress), mac)
}

// follow: one guest fails, the other one takes the address over, and the client comes to it there.
func (r *virtualRig) follow(from, to int, how string) {
	r.t.Helper()
	r.hosts[from].Await("the first owner answers for the address "+how, func() bool {
		return r.has(from) && r.reached(from)
	})
	answered := r.hosts[2].Refused("tunnel", "neighbour-answered")
	r.hosts[2].Await("the client's host answers for the address "+how, func() bool {
		return r.reached(from) && r.hosts[2].Refused("tunnel", "neighbour-answered") > answered
	})
	r.in(r.guests[from], "ip", "link", "set", "eth0", "down")
	begin := time.Now()
	r.hosts[to].Await("the other guest takes the address over "+how, func() bool { return r.has(to) })
	taken := time.Now()
	r.hosts[2].Await("the client comes to the other guest "+how, func() bool { return r.reached(to) })
	r.t.Logf("%s: the other guest has the address %v after the first one failed, and the client comes to it %v later",
		how, taken.Sub(begin), time.Since(taken))
	r.in(r.guests[from], "ip", "link", "set", "eth0", "up")
	r.hosts[from].Await("the first guest is back "+how, func() bool { return !r.has(from) })
}

// TestS85_AVirtualAddressIsFollowed: keepalived moves an address between guests of two hosts; a guest of a third host,
// whose own host answers who has it, comes to the one that has it now, with controllers and without.
func TestS85_AVirtualAddressIsFollowed(t *testing.T) {
	testkit.Long(t, "waits for keepalived to move an address")
	t.Parallel()
	r := newVirtualRig(t)
	first := 0
	r.hosts[0].Await("a guest has the address", func() bool {
		if r.has(1) {
			first = 1
		}
		return r.has(0) != r.has(1)
	})
	r.follow(first, 1-first, "with controllers")
	r.controller.End(syscall.SIGKILL)
	r.follow(1-first, first, "without controllers")
}
