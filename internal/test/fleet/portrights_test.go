package fleet

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/cable"
)

// A device of the same name as at the source is another guest's at the target: its port stays, whoever asks. A capture
// ends when its port goes to another port group.
func TestS113_S117_APortIsItsPortGroups(t *testing.T) {
	testkit.Long(t, "controllers and two hosts; TestS113_CallsByAControllerTakeNothingFromOthers and "+
		"TestS117_ACaptureIsOverWhenItsPortIsInAnotherPortGroup have the rules")
	t.Parallel()
	f := newFleetSized(t, 2, ownConfig, "own1", "own2")
	f.controller.Start()
	for n, h := range f.hosts {
		f.controller.Join(h.Host, fmt.Sprintf("esx%d", n), map[string]string{"rack": "a"})
	}
	f.controller.Define(fleetText)
	for n, group := range []string{"web", "db"} {
		h := f.hosts[n]
		h.Up("uplink1")
		join(t, h.NS, "tap1", f.network, fmt.Sprint("guest-", n))
		h.must("port", "connect", group+"/eth0", "--switch", "dvs", "--port-group", group, "--device", "tap1",
			"--vm-uuid", fmt.Sprintf("6f9619ff-8b86-d011-b42d-00c04fc9640%d", n), "--adapter", "net0")
	}
	f.allUp()
	f.controller.Await("both ports are known", func() bool {
		out, _, _ := f.controller.Heddle("port", "list", "--switch", "dvs")
		return strings.Contains(out, "web/eth0") && strings.Contains(out, "db/eth0")
	})
	for _, args := range [][]string{{}, {"--device", "tap1"}, {"--device", "mgmt"}, {"--device", "eno2"}} {
		_, errs, status := f.controller.Heddle(append([]string{"port", "migrate", "web/eth0", "--to", "esx1", "--wait",
			"1s"}, args...)...)
		if status == 0 || !strings.Contains(errs, "cannot have device") || !strings.Contains(errs, "esx1") {
			t.Errorf("port migrate %q: status %d: %s", args, status, errs)
		}
	}
	if vlan := f.vlan(1, "db/eth0"); vlan != "access 20" {
		t.Errorf("db/eth0 is in %s", vlan)
	}
	s, err := f.hosts[1].State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range s.Ports {
		if p.Switch == "dvs" && p.Name != "db/eth0" {
			t.Errorf("esx1 has port %s", p.Name)
		}
	}

	// A move that is prepared is activated at once by who says that its guest runs there.
	f.controller.Heddle("port", "migrate", "web/eth0", "--to", "esx1", "--device", "tap2", "--wait", "1s")
	_, said, status := f.controller.Heddle("port", "migrate", "web/eth0", "--activate", "--to", "esx1")
	if status != 0 {
		out, _, _ := f.controller.Heddle("port", "list", "--switch", "dvs")
		t.Errorf("port migrate --activate: %s\n%s", said, out)
	}

	f.capturesUntilMoved(t, "web/eth0", "db")
	if f.controller.StateOf("esx0") != api.HostUp {
		t.Error("esx0 is not up")
	}
}

// capturesUntilMoved captures a port of the first host by way of the controller, while the guest sends as fast as it
// can, and moves the port to another port group: the capture shows its own port group alone, and what it has selected
// is shown or counted.
func (f *fleet) capturesUntilMoved(t *testing.T, port, group string) {
	t.Helper()
	cmd := f.controller.Command("capture", port, "--host", "esx0", "-o", "json")
	out, errs := &watchedText{}, &watchedText{}
	cmd.Stdout, cmd.Stderr = out, errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	f.controller.Await("it captures", func() bool { return strings.Contains(errs.String(), "capturing") })
	guest := cable.Open(t, f.network, "guest-0")
	stop := make(chan struct{})
	var sending sync.WaitGroup
	sending.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			case <-time.After(200 * time.Microsecond):
				guest.Send(cable.Frame(cable.Broadcast(), cable.MAC(1), 0, fmt.Sprint("frame ", n)))
			}
		}
	})
	const before, after = `"id":10}`, `"id":20}`
	f.controller.Await("frames are shown", func() bool { return strings.Count(out.String(), before) > 100 })
	f.hosts[0].must("port", "move", port, "--port-group", group)
	err := cmd.Wait()
	close(stop)
	sending.Wait()
	if err == nil || !strings.Contains(errs.String(), "port "+port+" is in port group "+group+" now") {
		t.Errorf("%v: %s", err, errs)
	}
	if n := strings.Count(out.String(), after); n > 0 {
		t.Errorf("%d frames of port group %s are shown", n, group)
	}
	var shown, selected, lost int
	sum := regexp.MustCompile(`(\d+) frames? captured, (\d+) selected by the switch, (\d+) lost`).
		FindStringSubmatch(errs.String())
	if sum == nil {
		t.Fatalf("there is no sum: %s", errs)
	}
	for i, into := range []*int{&shown, &selected, &lost} {
		if *into, err = strconv.Atoi(sum[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	if shown+lost != selected || shown != strings.Count(out.String(), "\n") {
		t.Errorf("%d lines: %s", strings.Count(out.String(), "\n"), sum[0])
	}
}
