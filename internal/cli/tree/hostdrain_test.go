package tree

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/api"
	"heddle/internal/cli"
	hostcmds "heddle/internal/cli/hosts"
	"heddle/internal/spec"
)

// GetControllerStatus says on which host a controller's machine is.
func (f *fleetStand) GetControllerStatus(context.Context, *controllerv1.GetControllerStatusRequest) (
	*controllerv1.GetControllerStatusResponse, error) {
	f.looks.Add(1)
	return &controllerv1.GetControllerStatusResponse{Now: timestamppb.Now(),
		Controllers: []*controllerv1.ControllerPlace{
			{Id: "1", Name: "c1", Host: f.carrier}, {Id: "2", Name: "c2"}}}, nil
}

// guests is a host with a port of each kind.
func guests() *standIn {
	return &standIn{state: api.State{Ports: []api.Port{
		{Switch: "lab", Name: "vm1/eth0", State: api.Up, VM: "6f9619ff-8b86-d011-b42d-00c04fc96401", Adapter: "net0"},
		{Switch: "lab", Name: "vm2/eth0", State: api.Pending, Reason: "no device"},
		{Switch: "lab", Name: "vm3/eth0", State: api.Waiting, Wait: &api.Wait{Why: "its QEMU waits for it"}},
		{Switch: "lab", Name: "vm4/eth0", State: api.Waiting, Wait: &api.Wait{Left: true}},
		{Switch: "lab", Name: "vmk0", State: api.Up, Role: spec.Host},
	}}}
}

func TestDrainListsWhatIsInTheWay(t *testing.T) {
	f := newFleetStand(t, map[string]*standIn{"esx1": guests(), "esx2": {}, "esx3": nil})
	f.carrier = "esx1"
	out, errs, status := f.run("host", "drain", "esx1", "-o", "json")
	var got hostcmds.DrainedHost
	if err := json.Unmarshal([]byte(out), &got); err != nil || status != 1 {
		t.Fatalf("status %d, %v\n%s%s", status, err, out, errs)
	}
	var kinds []string
	for _, i := range got.Items {
		if i.InTheWay {
			kinds = append(kinds, i.Kind+" "+i.Name)
		}
	}
	want := "controller c1, guest vm1/eth0, arriving vm3/eth0"
	if text := strings.Join(kinds, ", "); text != want || got.Empty || len(got.Items) != 4 {
		t.Errorf("in the way are %s, want %s: %+v", text, want, got.Items)
	}
	table, _, status := f.run("host", "drain", "esx1")
	for line := range strings.Lines(table) {
		if len(line) > cli.TableWidth+1 {
			t.Errorf("too wide: %s", line)
		}
	}
	if status != 1 || !strings.Contains(table, "vm1/eth0") || !strings.Contains(table, "host port") {
		t.Errorf("status %d\n%s", status, table)
	}
	f.says(0, "nothing is in the way of taking host esx2 down\n", "", "host", "drain", "esx2")
	if _, errs, status := f.run("host", "drain", "esx3"); status != 1 || !strings.Contains(errs, "not connected") {
		t.Errorf("status %d, %s", status, errs)
	}
}

// With --wait the command ends when the host is empty, and an interrupted one shows what is left.
func TestDrainWaits(t *testing.T) {
	f := newFleetStand(t, map[string]*standIn{"esx1": guests()})
	type result struct {
		out    string
		status int
	}
	run := func(ctx context.Context) chan result {
		done := make(chan result, 1)
		go func() {
			out, _, status := f.runIn(ctx, "host", "drain", "esx1", "--wait")
			done <- result{out, status}
		}()
		return done
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := run(ctx)
	for f.looks.Load() < 2 { // the first look is over
		time.Sleep(time.Millisecond)
	}
	cancel()
	if r := <-done; r.status != 1 || !strings.Contains(r.out, "vm1/eth0") {
		t.Errorf("interrupted: status %d\n%s", r.status, r.out)
	}
	done = run(t.Context())
	f.mu.Lock()
	f.hosts["esx1"] = &standIn{}
	f.mu.Unlock()
	if r := <-done; r.status != 0 || !strings.Contains(r.out, "nothing is in the way") {
		t.Errorf("status %d\n%s", r.status, r.out)
	}
}

// Each guest is told where it could go, and for one that can go nowhere what each host lacks.
func TestDrainSaysWhereGuestsCouldGo(t *testing.T) {
	const vm = "6f9619ff-8b86-d011-b42d-00c04fc96401"
	host := func(group string, uplink api.PortState, ports ...api.Port) *standIn {
		return &standIn{state: api.State{Switches: []api.Switch{{Name: "lab"}},
			PortGroups: []api.PortGroup{{Switch: "lab", Name: group}},
			Uplinks:    []api.Uplink{{Switch: "lab", Name: "uplink1", State: uplink}}, Ports: ports}}
	}
	p := api.Port{Switch: "lab", Name: "vm1/eth0", PortGroup: "web", State: api.Up, VM: vm, Adapter: "net0"}
	stranger, waits := p, p
	stranger.VM = "6f9619ff-8b86-d011-b42d-00c04fc96402"
	waits.State = api.Waiting
	hosts := map[string]*standIn{"esx1": host("web", api.Up, p), "bare": {}, "gone": nil,
		"groupless": host("db", api.Up), "isolated": host("web", api.Down), "taken": host("web", api.Up, stranger)}
	f := newFleetStand(t, hosts)
	lacks := map[string]string{"bare": "no switch lab", "gone": "disconnected", "groupless": "no port group web",
		"isolated": "no uplink of its switch lab is up", "taken": "another guest has a port of that name"}
	table, _, status := f.run("host", "drain", "esx1")
	for name, why := range lacks {
		if !strings.Contains(table, name+": ") || !strings.Contains(table, why) {
			t.Errorf("says nothing of %s (%s):\n%s", name, why, table)
		}
	}
	if status != 1 || !strings.Contains(table, "nowhere") {
		t.Errorf("status %d\n%s", status, table)
	}
	f.mu.Lock()
	for _, name := range []string{"good1", "good2", "good3", "good4"} {
		hosts[name] = host("web", api.Up)
	}
	hosts["good1"].state.Ports = []api.Port{waits} // prepared already
	f.mu.Unlock()
	out, errs, _ := f.run("host", "drain", "esx1", "-o", "json")
	var got hostcmds.DrainedHost
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err, errs)
	}
	if to := strings.Join(got.Items[0].Targets, " "); to != "good1 good2 good3" || len(got.Items[0].Lacks) == 0 {
		t.Errorf("could go to %q: %+v", to, got.Items[0])
	}
	if table, _, _ = f.run("host", "drain", "esx1"); strings.Contains(table, "nowhere") {
		t.Error(table)
	}
}
