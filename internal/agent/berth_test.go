package agent

import (
	"context"
	"fmt"
	"strings"
	"testing"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/agent/cluster"
	"heddle/internal/api"
	"heddle/internal/spec"
)

// A hook that prepares a port does not know what the port has where its guest runs: the host asks a controller. What it
// hears counts as if the hook had said it; where nobody answers, the guest arrives.
func TestS100_APortThatAHookPreparesIsComparedWithWhereItsGuestRuns(t *testing.T) {
	r := newRig(t, base)
	var asked []*controllerv1.DescribeArrivalRequest
	var says *controllerv1.DescribeArrivalResponse
	describe := func(_ context.Context, q *controllerv1.DescribeArrivalRequest) (
		*controllerv1.DescribeArrivalResponse, error) {
		if asked = append(asked, q); says == nil {
			return nil, cluster.ErrNoController
		}
		return says, nil
	}
	flows := func(context.Context) (*api.FlowStatus, error) {
		return &api.FlowStatus{Switches: []api.FlowSwitch{{Switch: "other"},
			{Switch: "lab", Flows: 60, MaxFlows: 100}}}, nil
	}
	r.commands.admission = newAdmission(r.shared, r.ports, r.attaching, describe, flows)
	for i, row := range []struct {
		name   string
		hears  *controllerv1.DescribeArrivalResponse
		knows  int // how many flows the caller says itself
		forced bool
		says   string // "" where it is connected
	}{
		{"nobody answers", nil, 0, false, ""},
		{"nobody has the guest", &controllerv1.DescribeArrivalResponse{}, 0, false, ""},
		{"there is room for the flows", &controllerv1.DescribeArrivalResponse{Flows: 40}, 0, false, ""},
		{"no room for the flows", &controllerv1.DescribeArrivalResponse{Flows: 41}, 0, false,
			"it has 41 flows where its guest runs, and the table of flows of switch lab has room for 40 more here " +
				"(60 of 100)"},
		{"the caller knows the flows", nil, 50, false, "it has 50 flows where its guest runs"},
		{"forced", &controllerv1.DescribeArrivalResponse{Flows: 41}, 0, true, ""},
		{"no room for the MACs", &controllerv1.DescribeArrivalResponse{Macs: 3}, 0, false, "it has learned 3 MACs"},
		{"no uplink", &controllerv1.DescribeArrivalResponse{Uplink: true}, 0, false,
			"its guest reaches the physical network where it runs"},
		{"an old agent", &controllerv1.DescribeArrivalResponse{Lacks: "the agent does not know x"}, 0, false,
			"the agent does not know x"},
	} {
		t.Run(row.name, func(t *testing.T) {
			asked, says = nil, row.hears
			name := fmt.Sprintf("g%d/net0", i)
			q := api.Incoming{Flows: row.knows, Connect: api.Connect{VM: "6f9619ff-8b86-d011-b42d-00c04fc96401",
				Adapter: "net0", Port: spec.Port{Name: name, PortGroup: "web", Device: fmt.Sprintf("pg%d", i)}}}
			err := r.command(func(ctx context.Context) error {
				err := r.commands.Expect(ctx, api.Expect{Guest: fmt.Sprintf("g%d", i), Force: row.forced})
				if err == nil && row.knows > 0 {
					_, err = r.commands.ConnectIncoming(ctx, q)
				} else if err == nil {
					_, err = r.commands.Reconnect(ctx, q.Connect)
				}
				return err
			})
			connected := r.connected.port(name) != nil
			if row.says == "" && (err != nil || !connected) || row.says != "" && (!invalid(err) || connected ||
				!strings.Contains(err.Error(), row.says)) {
				t.Errorf("connected %v, %v", connected, err)
			}
			if asks := row.knows == 0 && !row.forced; asks != (len(asked) == 1 && asked[0].GetSwitch() == "lab") {
				t.Errorf("asked %v", asked)
			}
			if connected {
				if err := r.disconnect(api.Disconnect{Port: name}); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// A guest that is announced with what it needs is refused before anything of it is here; not by force.
func TestS100_AnAnnouncedGuestIsRefusedWhereItLacksSomething(t *testing.T) {
	r := newRig(t, base)
	expect := func(q api.Expect) error {
		return r.command(func(ctx context.Context) error { return r.commands.Expect(ctx, q) })
	}
	err := expect(api.Expect{Guest: "vm1", Needs: []string{"nfs"}})
	if !invalid(err) || !strings.Contains(err.Error(), "guest vm1 needs nfs, and this host has neither") ||
		len(r.state.Expected) > 0 {
		t.Errorf("%v, expected %v", err, r.state.Expected)
	}
	err = expect(api.Expect{Guest: "vm1", Needs: []string{"nfs"}, Force: true})
	if err != nil || !r.state.Forced["vm1"] {
		t.Errorf("by force: %v, %v", err, r.state.Forced)
	}
	if err := expect(api.Expect{Guest: "vm1"}); err != nil || r.state.Forced["vm1"] {
		t.Errorf("announced anew without force: %v, %v", err, r.state.Forced)
	}
}
