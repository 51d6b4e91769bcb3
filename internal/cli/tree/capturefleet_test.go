package tree

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/cli/clitest"
	"heddle/internal/test/testkit"
)

// neverBegins says by a channel that a capture was asked for, and begins none until its caller leaves.
func neverBegins(s *standIn) (begun chan struct{}) {
	begun = make(chan struct{}, 100)
	s.capturing = func(ctx context.Context, _ func(api.CaptureEvent) error) error {
		begun <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}
	return begun
}

// A capture that is interrupted before it has begun says so, and leaves a file as it was.
func TestCapture_InterruptedBeforeItBegins(t *testing.T) {
	kept := filepath.Join(t.TempDir(), "kept.pcapng")
	if err := os.WriteFile(kept, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	interrupted := func(begun <-chan struct{}) context.Context {
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-begun; cancel() }()
		return ctx
	}
	t.Run("all hosts", func(t *testing.T) {
		s := shownHost(1500, portOfVM("web1/eth0", "5f3c9d0e"))
		f := newFleetStand(t, map[string]*standIn{"esx1": s, "esx2": nil})
		var out strings.Builder
		errs, status := f.runTo(interrupted(neverBegins(s)), &out, "capture", "web1/eth0", "-w", kept)
		if errs != "heddle: interrupted: nothing was captured, since no host had begun the capture\n" ||
			status != cli.ExitFailure || out.Len() > 0 {
			t.Errorf("status %d: %s%s", status, &out, errs)
		}
	})
	if text, err := os.ReadFile(kept); err != nil || string(text) != "kept" {
		t.Errorf("the file holds %q, %v", text, err)
	}
}

// held is a capture that has begun, and shows a frame each time it is told to.
func held(s *standIn) (show chan struct{}) {
	show = make(chan struct{})
	s.capturing = func(ctx context.Context, emit func(api.CaptureEvent) error) error {
		for _, e := range []api.CaptureEvent{{Started: &api.CaptureStarted{ID: 3}},
			{Port: &api.CapturePort{Number: 1, Switch: "dvs", Name: "web1/eth0"}}} {
			if err := emit(e); err != nil {
				return err
			}
		}
		for {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-show:
			}
			if err := emit(api.CaptureEvent{Frame: &api.CaptureFrame{Port: 1, Stage: api.StageAdmit, Length: 60,
				Time: time.Unix(1, 0), Data: make([]byte, 60)}}); err != nil {
				return err
			}
		}
	}
	return show
}

// What can't be written ends a capture of all hosts, however many there are, with the reason; and so does what somebody
// else has ended on all hosts.
func TestCapture_OfAllHostsEnds(t *testing.T) {
	testkit.Long(t, "ends captures in each way; TestCapture_OfAllHostsByRole has captures of all hosts")
	t.Run("where nothing can be written", func(t *testing.T) {
		hosts := map[string]*standIn{}
		for _, name := range []string{"esx1", "esx2"} {
			hosts[name] = shownHost(1500, portOfVM("web1/eth0", "5f3c9d0e"))
			held(hosts[name])
		}
		f := newFleetStand(t, hosts)
		out, errs, status := f.run("capture", "web1/eth0", "-w", filepath.Join(t.TempDir(), "no", "such"))
		if status != cli.ExitFailure || out != "" || !strings.HasPrefix(errs, "heddle: write the capture: open ") ||
			strings.Count(errs, "\n") != 1 {
			t.Errorf("status %d: %s%s", status, out, errs)
		}
	})
	t.Run("where somebody else has ended it", func(t *testing.T) {
		s := shownHost(1500, portOfVM("web1/eth0", "5f3c9d0e"))
		s.captured = clitest.CapturedFrames()
		f := newFleetStand(t, map[string]*standIn{"esx1": s, "esx2": shownHost(1500)})
		out, errs, status := f.run("capture", "web1/eth0")
		if status != cli.ExitOK || strings.Count(out, "\n") != 11 || strings.Count(out, "esx1:") != 11 ||
			!strings.Contains(errs, "\n11 frames captured, 13 selected by the switch, 2 lost") {
			t.Errorf("status %d: %s%s", status, out, errs)
		}
	})
	t.Run("when there are enough, on a host that does not end", func(t *testing.T) {
		s := shownHost(1500, portOfVM("web1/eth0", "5f3c9d0e"))
		show := held(s)
		f := newFleetStand(t, map[string]*standIn{"esx1": s})
		go func() { show <- struct{}{} }()
		out, errs, status := f.run("capture", "web1/eth0", "-c", "1")
		if status != cli.ExitFailure || strings.Count(out, "\n") != 1 ||
			!strings.Contains(errs, "\nhost esx1 did not end its capture: frames of it may be missing") {
			t.Errorf("status %d: %s%s", status, out, errs)
		}
	})
}

// Who may not see a host's whole state is refused with one line, however many hosts refuse, unless all that they ask
// for are ports that they see.
func TestCapture_OfAllHostsByRole(t *testing.T) {
	const text = "this needs viewer of the whole cluster, and ann has capture of dvs/web"
	refusing := func() *standIn {
		s := shownHost(1500, portOfVM("web1/eth0", "5f3c9d0e"))
		s.err = api.NewError(api.Invalid, text)
		return s
	}
	for _, args := range [][]string{{"tunnel"}, {"any"}, {"any", "--vni", "5000"}, {"--uplink", "uplink1"},
		{"web1/eth0", "--vlan", "10"}, {"--outer"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			f := newFleetStand(t, map[string]*standIn{"esx1": refusing(), "esx2": refusing()})
			f.ports = []*controllerv1.FleetPort{{Host: "esx1", Switch: "dvs", Name: "web1/eth0"}}
			f.says(cli.ExitUsage, "", "heddle: "+text+"\n", append([]string{"capture"}, args...)...)
		})
	}
	t.Run("a port that is seen", func(t *testing.T) {
		s := refusing()
		s.capturing = func(_ context.Context, emit func(api.CaptureEvent) error) error {
			for _, e := range clitest.CapturedFrames() {
				if err := emit(e); err != nil {
					return err
				}
			}
			return nil
		}
		f := newFleetStand(t, map[string]*standIn{"esx1": s})
		f.ports = []*controllerv1.FleetPort{{Host: "esx1", Switch: "dvs", Name: "web1/eth0"}}
		out, errs, status := f.run("capture", "web1/eth0")
		if status != cli.ExitOK || strings.Count(out, "esx1:") != 11 {
			t.Errorf("status %d: %s%s", status, out, errs)
		}
		f.says(cli.ExitFailure, "", "heddle: there is no port or uplink web2/eth0; there is web1/eth0\n", "capture",
			"web2/eth0")
	})
}
