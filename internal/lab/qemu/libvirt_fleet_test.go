package qemu_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/lab/qemu"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/realhost"
)

const (
	// libvirtFleet is what the controller defines for two hosts with a libvirtd each.
	libvirtFleet = `
switches:
- name: dvs
  uplinks: [{name: uplink1}]
  portGroups:
  - {name: web, security: {forgedTransmits: accept, macChanges: accept, macLearning: {enabled: true}}}
templates:
- name: all
  labels: {rack: a}
  switches: [{name: dvs, uplinks: [{name: uplink1, device: up}]}]
`
	domainMAC, innerMAC = "52:54:00:00:02:01", "52:54:00:00:02:99"
	domainPort          = "vm1/net0"
	pluggedPort         = "vm1/net1"
)

// libvirtSite is two hosts of one controller, each with an agent and a libvirtd, and a station in their network.
type libvirtSite struct {
	*site
	libvirt    [2]*libvirtd
	controller *realhost.Controller
	vm         string // the domain's UUID
}

func newLibvirtSite(t *testing.T, ctx context.Context) *libvirtSite {
	t.Helper()
	s := &libvirtSite{site: newFabric(t)}
	management := testkit.NS(t, "management")
	s.cable(t, management, "to-ctl", "mgmt")
	addAddrsTo(t, management, "mgmt", "10.0.0.100/24")
	binary, err := heddleProgram()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(realhost.BinaryVar, binary)
	s.controller = realhost.NewController(t, management, "10.0.0.100:7411")
	s.controller.Start()
	for i := range s.hosts {
		h := newHeddleHost(t, "")
		s.hosts[i] = h
		s.cable(t, h.NS, fmt.Sprintf("to-host%d", i), "up")
		s.cable(t, h.NS, fmt.Sprintf("to-mgmt%d", i), "mgmt")
		addAddrsTo(t, h.NS, "mgmt", fmt.Sprintf("10.0.0.%d/24", i+1))
		s.controller.Join(h.Host, fmt.Sprintf("esx%d", i), map[string]string{"rack": "a"})
		s.libvirt[i] = newLibvirtd(t, ctx, h, fmt.Sprintf("host%d", i))
	}
	if out := s.controller.Define(libvirtFleet); len(out.Hosts) != 2 || len(out.Waiting) > 0 {
		t.Fatalf("the definition: %+v", out)
	}
	return s
}

// answers waits until the domain answers the station.
func (s *libvirtSite) answers(t *testing.T, ctx context.Context) {
	t.Helper()
	if _, err := s.outside.run(ctx, "until ping -c 1 -W 1 192.0.2.1; do sleep 0.1; done"); err != nil {
		t.Fatal(err)
	}
}

// counts are the port's counters on a host, by name.
func (s *libvirtSite) counts(t *testing.T, ctx context.Context, host int) map[string]uint64 {
	t.Helper()
	all, err := s.hosts[host].Stats(ctx)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]uint64{}
	for _, p := range all {
		if p.Name != domainPort {
			continue
		}
		for _, c := range p.Counters {
			out[c.Name] = c.Value
		}
	}
	if len(out) < 18 {
		t.Fatalf("host %d shows %d counters of %s: %+v", host, len(out), domainPort, out)
	}
	return out
}

// learns has the domain send with another MAC for a moment, by its second serial port.
func (s *libvirtSite) learns(t *testing.T, ctx context.Context, serial string) {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", serial)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	command := "ip link set eth0 address " + innerMAC + "; ping -c 2 -i 0.2 -W 1 192.0.2.9; ip link set eth0 address " +
		domainMAC + "; ping -c 1 192.0.2.9"
	if _, err := io.WriteString(conn, "run 1 "+base64.StdEncoding.EncodeToString([]byte(command))+"\n"); err != nil {
		t.Fatal(err)
	}
	s.hosts[0].Await("the MAC is learned", func() bool { return s.learned(t, ctx, 0) })
}

// learned reports whether a host has learned the domain's other MAC at its port.
func (s *libvirtSite) learned(t *testing.T, ctx context.Context, host int) bool {
	t.Helper()
	macs, err := s.hosts[host].MACs(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(macs, func(m api.MAC) bool { return m.Port == domainPort && m.MAC == innerMAC })
}

// move is the newest move that a host shows.
func (s *libvirtSite) move(ctx context.Context, host int) (m api.PortMove) {
	list, err := s.hosts[host].PortMoves(ctx, api.PortMoveOf{})
	if err == nil && len(list) > 0 {
		m = list[len(list)-1]
	}
	return m
}

// copied waits until the target has a copy of the domain's port.
func (s *libvirtSite) copied(ctx context.Context) {
	s.hosts[1].Await("a copy is at the target", func() bool {
		m := s.move(ctx, 1)
		return m.Phase == "copied" && m.Copies > 0
	})
}

// stays checks that the domain and its port are where they were after a move that came to nothing.
func (s *libvirtSite) stays(t *testing.T, ctx context.Context, before map[string]uint64) {
	t.Helper()
	s.hosts[0].Await("the source knows that nobody takes the port over", func() bool {
		return s.move(ctx, 0).Phase == "cancelled"
	})
	s.hosts[1].awaitNoPorts(t, ctx, "vm1")
	s.hosts[0].awaitPort(t, ctx, domainPort, "where it was", func(p portView) bool { return p.State == "up" })
	s.answers(t, ctx)
	s.located(t, ctx, "esx0")
	atLeast(t, before, s.counts(t, ctx, 0))
}

// atLeast checks that no counter has become less, and that frames were counted.
func atLeast(t *testing.T, before, after map[string]uint64) {
	t.Helper()
	for name, n := range before {
		if after[name] < n {
			t.Errorf("counter %s went from %d to %d", name, n, after[name])
		}
	}
	if before["packetsInUnicast"] == 0 {
		t.Errorf("no frame was counted: %+v", before)
	}
}

// located waits until the controller says that the domain's ports are active on one host, that one.
func (s *libvirtSite) located(t *testing.T, ctx context.Context, host string) {
	t.Helper()
	var got *api.LocatedPorts
	s.controller.Await("the controller knows where the port is", func() bool {
		var err error
		if got, err = s.controller.Fleet.LocatePorts(ctx, api.LocateQuery{VM: s.vm}); err != nil {
			t.Fatal(err)
		}
		return len(got.Ports) > 0 && !slices.ContainsFunc(got.Ports, func(p api.LocatedPort) bool {
			return p.Host != host || p.Conflict != "" || len(p.Instances) != 1
		})
	})
}

// refusesNeeds has the target refuse the domain for what its metadata says that it needs: the migration fails in words,
// and nothing of it is there.
func (s *libvirtSite) refusesNeeds(t *testing.T, ctx context.Context) {
	t.Helper()
	from, to := s.libvirt[0], s.libvirt[1]
	says := func(more string) {
		t.Helper()
		from.must(t, ctx, "", "metadata", "vm1", "urn:heddle:domain:1", "--key", "heddle", "--live", "--set",
			`<ports><port portGroup="web"/>`+more+`</ports>`)
	}
	says(`<needs name="nfs"/>`)
	err := <-from.begins(ctx, to, "vm1", "refused")
	if err == nil || !strings.Contains(err.Error(), "migrate refused: guest vm1 needs nfs, and this host has neither") {
		t.Errorf("the target lacks what the domain needs: %v", err)
	}
	s.hosts[1].noPorts(t, ctx, "vm1")
	says(`<needs name="web"/>`)
}

// A domain moves by "virsh migrate --live" between two hosts of one controller: given up, failed, and then really. Its
// port stays where the guest runs, and takes its counters and learned MACs along.
func TestS79_S99_S100_ADomainAndItsPortMoveUnderAController(t *testing.T) {
	needGuests(t, qemu.VirtioNet)
	testkit.Tool(t, "libvirtd", "virsh", "unshare")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	s := newLibvirtSite(t, ctx)
	from, to := s.libvirt[0], s.libvirt[1]
	serial := filepath.Join(from.Dir, "vm1.run")
	xml := strings.Replace(domain(t, ctx, from.Dir, "vm1", domainMAC, `<heddle:port portGroup="web"/>`),
		"<serial type='null'/><serial type='null'/>", "<serial type='null'/><serial type='unix'><source mode='bind' "+
			"path='"+serial+"'/></serial>", 1)
	from.must(t, ctx, xml, "create", "/dev/stdin")
	s.vm = strings.TrimSpace(from.must(t, ctx, "", "domuuid", "vm1"))
	s.answers(t, ctx)
	s.learns(t, ctx, serial)
	s.answers(t, ctx)

	s.refusesNeeds(t, ctx)
	before := s.counts(t, ctx, 0)
	slow := from.begins(ctx, to, "vm1", "cancelled", "--bandwidth", "1")
	from.migrates(t, ctx, "vm1", slow)
	s.copied(ctx)
	from.must(t, ctx, "", "domjobabort", "vm1")
	if err := <-slow; err == nil {
		t.Fatal("the migration was given up, and has succeeded")
	}
	s.stays(t, ctx, before)

	before = s.counts(t, ctx, 0)
	slow = from.begins(ctx, to, "vm1", "failed", "--bandwidth", "1")
	from.migrates(t, ctx, "vm1", slow)
	s.copied(ctx)
	quit(t, ctx, filepath.Join(from.Dir, "vm1.qmp")) // the target's, which has taken the path over
	if err := <-slow; err == nil {
		t.Fatal("the target's QEMU has ended, and the migration has succeeded")
	}
	s.stays(t, ctx, before)

	s.plugsAndUnplugs(t, ctx)
	before = s.counts(t, ctx, 0)
	if err := <-from.begins(ctx, to, "vm1", "moved"); err != nil {
		t.Fatal(err)
	}
	for _, port := range []string{domainPort, pluggedPort} {
		s.hosts[1].awaitPort(t, ctx, port, "arrived", func(p portView) bool { return p.State == "up" })
	}
	s.hosts[1].Await("the port's last copy is there", func() bool {
		m := s.move(ctx, 1)
		return m.Phase == "active" && m.Last && m.Peer == "esx0"
	})
	atLeast(t, before, s.counts(t, ctx, 1))
	if !s.learned(t, ctx, 1) {
		t.Error("the MAC that was learned at the port did not come along")
	}
	s.hosts[0].Await("the source has released the port", func() bool { return s.move(ctx, 0).Phase == "released" })
	s.hosts[0].noPorts(t, ctx, "vm1")
	s.located(t, ctx, "esx1")
	s.answers(t, ctx)
	to.must(t, ctx, plugged, "detach-device", "vm1", "/dev/stdin", "--live")
	s.awaitGone(t, ctx, 1, pluggedPort)
	from.toldInOrder(t, ctx, domainPort, "migration: prepared", "migration: cancelled", "migration: cancelled",
		"waiting: libvirt says that it was stopped", "disconnected: ", "migration: released")
	to.must(t, ctx, "", "destroy", "vm1")
	s.hosts[1].awaitNoPorts(t, ctx, "vm1")
}

// plugsAndUnplugs plugs a second adapter into the domain. While the domain moves, libvirt adds and removes none: the
// move is given up, the adapter is unplugged, and plugged in again.
func (s *libvirtSite) plugsAndUnplugs(t *testing.T, ctx context.Context) {
	t.Helper()
	from, to := s.libvirt[0], s.libvirt[1]
	attach := func() {
		t.Helper()
		from.must(t, ctx, plugged, "attach-device", "vm1", "/dev/stdin", "--live")
		s.hosts[0].awaitPort(t, ctx, pluggedPort, "connected", func(p portView) bool { return p.State == "up" })
	}
	attach()
	slow := from.begins(ctx, to, "vm1", "unplugged", "--bandwidth", "1")
	from.migrates(t, ctx, "vm1", slow)
	s.hosts[1].awaitPort(t, ctx, pluggedPort, "to arrive", func(p portView) bool { return p.State == "waiting" })
	if _, err := from.virsh(ctx, plugged, "detach-device", "vm1", "/dev/stdin", "--live"); err == nil {
		t.Error("libvirt has unplugged an adapter of a domain that moves")
	}
	from.must(t, ctx, "", "domjobabort", "vm1")
	if err := <-slow; err == nil {
		t.Fatal("the migration was given up, and has succeeded")
	}
	s.hosts[1].awaitNoPorts(t, ctx, "vm1")
	from.must(t, ctx, plugged, "detach-device", "vm1", "/dev/stdin", "--live")
	s.awaitGone(t, ctx, 0, pluggedPort)
	attach()
	s.answers(t, ctx)
}

// awaitGone waits until a host has no port of that name.
func (s *libvirtSite) awaitGone(t *testing.T, ctx context.Context, host int, port string) {
	t.Helper()
	s.hosts[host].Await(port+" is gone", func() bool {
		state, err := s.hosts[host].State(ctx)
		return err == nil && !slices.ContainsFunc(state.Ports, func(p api.Port) bool { return p.Name == port })
	})
}

// quit ends a QEMU by its monitor.
func quit(t *testing.T, ctx context.Context, socket string) {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, `{"execute":"qmp_capabilities"}{"execute":"quit"}`+"\n"); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, conn) // until it has ended
}
