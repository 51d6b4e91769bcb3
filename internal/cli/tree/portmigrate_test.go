package tree

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/types/known/timestamppb"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/api/heddle/controller/v1/controllerv1connect"
	"heddle/internal/api"
	"heddle/internal/spec/printable"
)

// MovePort reports three steps, and then whatever the port's name says.
func (f *fleetStand) MovePort(ctx context.Context, q *controllerv1.MovePortRequest,
	out controllerv1connect.MoveServiceMovePortServerStream) error {
	if q.GetTo() == "full" {
		return connect.NewError(connect.CodeFailedPrecondition, "host full: no room")
	}
	steps := []controllerv1.MoveStep{controllerv1.MoveStep_MOVE_STEP_PREPARED,
		controllerv1.MoveStep_MOVE_STEP_COPIED, controllerv1.MoveStep_MOVE_STEP_STOPPED}
	switch q.GetPort() {
	case "goes":
		steps = append(steps, controllerv1.MoveStep_MOVE_STEP_ACTIVE, controllerv1.MoveStep_MOVE_STEP_RELEASED)
	case "comes back":
		steps = append(steps, controllerv1.MoveStep_MOVE_STEP_CANCELLED)
	}
	if q.GetPort() == "hangs at once" {
		steps = nil
	}
	for i, s := range steps {
		if err := out.Send(&controllerv1.MovePortResponse{Step: s, At: timestamppb.New(time.Unix(int64(i), 0)),
			Text: strings.Join(q.GetNeeds(), "+")}); err != nil {
			return err
		}
	}
	if strings.HasPrefix(q.GetPort(), "hangs") {
		f.looks.Add(1)
		<-ctx.Done()
	}
	return nil
}

// CancelMove cancels what goes.
func (f *fleetStand) CancelMove(_ context.Context, q *controllerv1.CancelMoveRequest) (
	*controllerv1.CancelMoveResponse, error) {
	if q.GetPort() != "goes" {
		return nil, connect.NewError(connect.CodeNotFound, "no host waits for the guest of port "+q.GetPort())
	}
	return &controllerv1.CancelMoveResponse{}, nil
}

// ActivateMove activates.
func (f *fleetStand) ActivateMove(context.Context, *controllerv1.ActivateMoveRequest) (
	*controllerv1.ActivateMoveResponse, error) {
	return &controllerv1.ActivateMoveResponse{}, nil
}

// ListMoves lists one move.
func (f *fleetStand) ListMoves(context.Context, *controllerv1.ListMovesRequest) (*controllerv1.ListMovesResponse,
	error) {
	return &controllerv1.ListMovesResponse{Unreachable: []string{"c9"}, Moves: []*controllerv1.FleetMove{{
		Move: strings.Repeat("0", 32), Vm: "6f9619ff-8b86-d011-b42d-00c04fc96401", Adapter: "net0", To: "esx2",
		Step: controllerv1.MoveStep_MOVE_STEP_COPIED, Since: timestamppb.Now()}}}, nil
}

func TestMigrateShowsTheStepsOfAMove(t *testing.T) {
	f := newFleetStand(t, map[string]*standIn{})
	migrate := func(args ...string) (string, string, int) {
		return f.run(append([]string{"port", "migrate"}, args...)...)
	}
	out, errs, status := migrate("goes", "--to", "esx2", "--needs", "storage,vmotion")
	if status != 0 || strings.Count(out, "\n") != 5 || !strings.Contains(out, "stopped    storage+vmotion\n") ||
		!strings.Contains(out, "released") {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
	out, _, status = migrate("goes", "--to", "esx2", "-o", "json")
	var steps []api.MigrateStep
	if err := json.Unmarshal([]byte(out), &steps); err != nil || status != 0 || len(steps) != 5 ||
		steps[3].Step != api.FleetMoveActive || steps[3].At.Unix() != 3 {
		t.Errorf("status %d, %v: %+v", status, err, steps)
	}
	for _, row := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"stays", "--to", "esx2"}, 1, "heddle port migrate stays --cancel"},
		{[]string{"comes back", "--to", "esx2"}, 1, "the move was cancelled"},
		{[]string{"goes", "--to", "full"}, 2, "host full: no room"},
		{[]string{"other", "--cancel"}, 1, "no host waits for the guest of port other"},
		{[]string{"goes"}, 2, "--to"},
		{[]string{"--to", "esx2"}, 2, "say which port"},
		{[]string{"goes", "--cancel", "--activate"}, 2, "give one of them"},
		{[]string{"goes", "--list"}, 2, "leave out"},
		{[]string{"goes", "--to", "esx2", "--wait", "0s"}, 2, "above 0"},
	} {
		if _, errs, status := migrate(row.args...); status != row.status || !strings.Contains(errs, row.says) {
			t.Errorf("%v: status %d, %s", row.args, status, errs)
		}
	}
	f.says(0, "the move of port goes is cancelled: the guest stays where it is\n", "", "port", "migrate", "goes",
		"--cancel")
	f.says(0, "port goes is active at the target\n", "", "port", "migrate", "goes", "--activate")
	out, errs, status = migrate("--list")
	if status != 0 || !strings.Contains(out, "copied") || !strings.Contains(errs, "controller c9 does not answer") {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
}

// reports tells how often something was printed.
type reports chan struct{}

func (r reports) Write(p []byte) (int, error) {
	r <- struct{}{}
	return len(p), nil
}

// An interrupted command says how it stands, and how to take the move back.
func TestMigrateInterrupted(t *testing.T) {
	for _, row := range []struct {
		port, says string
		steps      int
	}{
		{"hangs", "the guest does not run on host esx2 yet; the move goes on", 3},
		{"hangs at once", "host esx2 has not said yet whether it prepares the port", 0},
	} {
		t.Run(row.port, func(t *testing.T) {
			f := newFleetStand(t, map[string]*standIn{})
			ctx, cancel := context.WithCancel(t.Context())
			printed, done := make(reports, 8), make(chan struct{})
			go func() {
				defer close(done)
				errs, status := f.runTo(ctx, printed, "port", "migrate", row.port, "--to", "esx2")
				if status != 1 || !strings.Contains(errs, row.says) || !strings.Contains(errs, "To take it back: "+
					"heddle port migrate "+printable.ShellWord(row.port)+" --cancel") {
					t.Errorf("status %d\n%s", status, errs)
				}
			}()
			for range row.steps { // the command has printed what the controller said
				select {
				case <-printed:
				case <-done:
					t.Fatal("the command has ended")
				}
			}
			for f.looks.Load() == 0 { // the controller was asked
				select {
				case <-time.After(time.Millisecond):
				case <-done:
					t.Fatal("the command has ended")
				}
			}
			cancel()
			<-done
		})
	}
}

// ReassignPort moves any port of esx1.
func (f *fleetStand) ReassignPort(_ context.Context, q *controllerv1.ReassignPortRequest) (
	*controllerv1.ReassignPortResponse, error) {
	if q.GetHost() != "" && q.GetHost() != "esx1" {
		return nil, connect.NewError(connect.CodeNotFound, "no host has a port "+q.GetPort())
	}
	return &controllerv1.ReassignPortResponse{Port: q.GetPort(), Host: "esx1", Switch: q.GetSwitch(),
		PortGroup: "web", Warnings: []string{"look"}}, nil
}

func TestMoveByWayOfAController(t *testing.T) {
	f := newFleetStand(t, map[string]*standIn{})
	out, errs, status := f.run("port", "move", "vm/eth0", "--switch", "dmz")
	if status != 0 || out != "port vm/eth0 is in port group web of switch dmz on host esx1\n" ||
		!strings.Contains(errs, "look") {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
	out, _, status = f.run("port", "move", "vm/eth0", "--switch", "dmz", "-o", "json")
	var got api.ReassignedPort
	if err := json.Unmarshal([]byte(out), &got); err != nil || status != 0 || got.Host != "esx1" ||
		got.PortGroup != "web" {
		t.Errorf("status %d, %v\n%s", status, err, out)
	}
	for _, args := range [][]string{{"--switch", "dmz", "--host", "esx9"}, {}, {"--switch", "dmz", "--confirm-within",
		"1m"}} {
		if out, _, status := f.run(append([]string{"port", "move", "vm/eth0"}, args...)...); status == 0 {
			t.Errorf("%q is no failure:\n%s", args, out)
		}
	}
}
