package fleet

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/clockshift"
)

// Nor does one of these commands say that all is well where the controller's disk is full, its clock is wrong, or its
// identity provider is away.
func TestS127_S128_S187_NoCommandSaysThatAllIsWellWhereAControllersMachineIsNot(t *testing.T) {
	testkit.Long(t, "fills a disk and starts a controller several times")
	t.Parallel()
	f := newFleetSized(t, 1, ownConfig, "own1", "own2")
	d := newDisk(t, f.controller.DataDir(), "320m")
	f.controller.Start()
	f.controller.Join(f.hosts[0].Host, "esx0", map[string]string{"rack": "a"})
	f.controller.Define(fleetText)
	f.inState("esx0", api.HostUp)
	again := func(clock *clockshift.Clock, args ...string) {
		f.controller.End(syscall.SIGTERM)
		f.controller.Clock, f.controller.Args = clock, args
		f.controller.Start()
	}
	for _, fault := range []struct {
		name string
		make func()
		says string // what each of the commands names
	}{
		{"its disk is full", func() { d.fill(8 << 20) }, "of 320.0 MiB are free"},
		{"its identity provider is away", func() {
			d.empty()
			again(nil, "--oidc-issuer", "https://127.0.0.1:9", "--oidc-client-id", "heddle")
			f.inState("esx0", api.HostUp)
		}, "the identity provider https://127.0.0.1:9 has not answered"},
		{"its clock is a year ahead", func() {
			again(clockshift.Showing(time.Now().AddDate(1, 0, 0)))
		}, "clock is"},
		{"its clock is a year behind", func() {
			again(clockshift.Showing(time.Now().AddDate(-1, 0, 0)))
		}, "clock is"},
	} {
		t.Run(fault.name, func(t *testing.T) {
			fault.make()
			f.namedByAll(t, fault.says)
		})
	}
}

// Nor does it on the host that has the fault.
func TestS127_S128_S186_NoCommandSaysThatAllIsWellOnAHostThatIsNot(t *testing.T) {
	testkit.Long(t, "fills a disk, and waits for what a host notices")
	t.Parallel()
	f := newFleetSized(t, 1, ownConfig, "own1", "own2")
	h := f.hosts[0]
	f.controller.Start()
	f.controller.Join(h.Host, "esx0", map[string]string{"rack": "a"})
	f.controller.Define(fleetText)
	f.inState("esx0", api.HostUp)
	h.End(syscall.SIGTERM)
	d := moveTo(t, filepath.Join(h.Dir, "state"), "4m")
	h.Start("")
	f.inState("esx0", api.HostUp)
	for _, fault := range []struct {
		name string
		make func()
	}{
		{"its disk is full", func() { d.fill(0) }},
		{"its disk can't be written", func() {
			d.empty()
			d.readOnly(true)
		}},
		{"its clock is years ahead", func() {
			d.readOnly(false)
			f.restart(0, time.Now().AddDate(10, 0, 0))
		}},
		{"it was removed", func() {
			f.restart(0, time.Now())
			f.inState("esx0", api.HostUp)
			if err := f.controller.RemoveHost(t.Context(), "esx0"); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(fault.name, func(t *testing.T) {
			fault.make()
			for _, args := range [][]string{{"status"}, {"doctor"}, {"advise"}} {
				h.Await(args[0]+" does not say that all is well", func() bool { return f.fails(0, args...) })
			}
		})
	}
}

// fails reports whether a command fails on a host, whose clock it has.
func (f *fleet) fails(n int, args ...string) bool {
	f.t.Helper()
	h := f.hosts[n]
	cmd := h.Command(args...)
	if h.Clock == nil {
		return h.Launch(cmd) != nil || cmd.Wait() != nil
	}
	if err := clockshift.Start(f.t, h.NS, cmd, h.Clock); err != nil {
		f.t.Fatal(err)
	}
	return cmd.Wait() != nil
}
