package qemu_test

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"heddle/internal/lab/qemu"
	"heddle/internal/observe/event"
	"heddle/internal/test/testkit"
)

// TestS99_LibvirtsEventsSilenceTheSource: there is no monitor of ours, and the hook is called too late. libvirt's
// events at its read-only socket make the source's port silent when a migration stops the guest, and active again when
// the migration is cancelled; after a restart of libvirtd the agent asks it.
func TestS99_LibvirtsEventsSilenceTheSource(t *testing.T) {
	needGuests(t, qemu.VirtioNet)
	testkit.Tool(t, "libvirtd", "virsh", "unshare")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	var hosts [2]*libvirtd
	var peer vm
	for i := range hosts {
		h := newHeddleHost(t, "switches: [{name: lab, portGroups: [{name: web}]}]\nports: [{name: peer, switch: lab, "+
			"portGroup: web, device: peer, mac: \"02:00:00:00:02:09\"}]")
		if p := (vm{ns: h.namespaceVM(t, "peer", net.HardwareAddr{2, 0, 0, 0, 2, 9}, "192.0.2.9/24")}); i == 0 {
			peer = p
		}
		hosts[i] = newLibvirtd(t, ctx, h, fmt.Sprintf("host%d", i+1))
	}
	from, to := hosts[0], hosts[1]
	const port = "vm1/net0"
	from.must(t, ctx, domain(t, ctx, from.Dir, "vm1", "52:54:00:00:02:01", `<heddle:port portGroup="web"/>`), "create",
		"/dev/stdin")
	answers := func() {
		t.Helper()
		if _, err := peer.run(ctx, "until ping -c 1 -W 1 192.0.2.1; do sleep 0.1; done"); err != nil {
			t.Fatal(err)
		}
	}
	answers()
	// A migration too slow to end by itself. When the guest is suspended by hand, libvirt gives the migration as the
	// reason.
	slow := from.begins(ctx, to, "vm1", "slow", "--bandwidth", "1")
	from.migrates(t, ctx, "vm1", slow)
	from.must(t, ctx, "", "suspend", "vm1")
	from.awaitPort(t, ctx, port, "silent", func(p portView) bool { return p.State == "waiting" })
	from.must(t, ctx, "", "domjobabort", "vm1")
	if err := <-slow; err == nil {
		t.Fatal("the migration was given up, and has succeeded")
	}
	from.awaitPort(t, ctx, port, "there again", func(p portView) bool { return p.State == "up" })
	from.toldInOrder(t, ctx, port, "waiting: libvirt says that it was stopped", "awake: ")
	answers()

	// Stopped once more, and libvirtd ends: the next one cancels the migration and resumes the guest.
	slow = from.begins(ctx, to, "vm1", "again", "--bandwidth", "1")
	from.migrates(t, ctx, "vm1", slow)
	from.must(t, ctx, "", "suspend", "vm1")
	from.awaitPort(t, ctx, port, "silent", func(p portView) bool { return p.State == "waiting" })
	from.stop(t, ctx)
	<-slow
	// A libvirtd that has the time for it cancels the migration and resumes the guest before it ends.
	var state string
	from.awaitPort(t, ctx, port, "silent still, or there with its guest", func(p portView) bool {
		state = p.State
		return state == "waiting" || state == "up"
	})
	if state == "up" {
		answers()
	}
	from.start(t, ctx)
	from.controls(t, ctx, "vm1")
	if strings.TrimSpace(from.must(t, ctx, "", "domstate", "vm1")) == "paused" {
		from.must(t, ctx, "", "resume", "vm1")
	}
	from.awaitPort(t, ctx, port, "there after a restart of libvirtd", func(p portView) bool { return p.State == "up" })
	answers()
	to.awaitNoPorts(t, ctx, "vm1")

	// Then it is really moved: the source's port is silent before its QEMU ends.
	if err := <-from.begins(ctx, to, "vm1", "fast"); err != nil {
		t.Fatal(err)
	}
	from.noPorts(t, ctx, "vm1")
	to.awaitPort(t, ctx, port, "arrived", func(p portView) bool { return p.State == "up" })
	from.toldInOrder(t, ctx, port, "waiting: ", "awake: ", "waiting: ", "awake: ",
		"waiting: libvirt says that it was stopped", "disconnected: ")
}

// begins begins to migrate a domain; the result comes when that has ended.
func (l *libvirtd) begins(ctx context.Context, to *libvirtd, name, socket string, args ...string) <-chan error {
	ended := make(chan error, 1)
	go func() {
		_, err := l.virsh(ctx, "", append([]string{"migrate", name, to.uri(), "--live", "--migrateuri", "unix://" +
			filepath.Join(l.Dir, socket)}, args...)...)
		ended <- err
	}()
	return ended
}

// migrates waits until the domain's memory is being transferred.
func (l *libvirtd) migrates(t *testing.T, ctx context.Context, name string, ended <-chan error) {
	t.Helper()
	for {
		out, err := l.virsh(ctx, "", "domjobinfo", name)
		if err == nil && strings.Contains(out, "Memory processed") {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s does not begin to move: %s %v", name, out, err)
		case err := <-ended:
			t.Fatalf("%s did not move: %v", name, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// toldInOrder checks that such events of a port were reported in this order, each as "kind: part of the text".
func (h *heddleHost) toldInOrder(t *testing.T, ctx context.Context, port string, want ...string) {
	t.Helper()
	all := h.told(t, ctx, port)
	rest := all
	for _, w := range want {
		kind, text, _ := strings.Cut(w, ": ")
		i := slices.IndexFunc(rest, func(e event.Event) bool {
			return string(e.Kind) == kind &&
				strings.Contains(e.Text, text)
		})
		if i < 0 {
			t.Errorf("no event %q behind the ones before it in %+v", w, all)
			return
		}
		rest = rest[i+1:]
	}
}
