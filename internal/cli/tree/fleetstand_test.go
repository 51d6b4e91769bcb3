package tree

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
	"google.golang.org/protobuf/types/known/timestamppb"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/api/heddle/controller/v1/controllerv1connect"
	"heddle/internal/api"
	"heddle/internal/cli"
)

// fleetStand stands in for a controller: calls that look go to the hosts' stand-ins.
type fleetStand struct {
	controllerv1connect.UnimplementedFleetServiceHandler
	controllerv1connect.UnimplementedMoveServiceHandler
	t      *testing.T
	socket string
	// definition is its content, at revision 18; ports are what hosts that are away reported last.
	definition string
	// carrier is the host on which the controller's machine is a VM, looks is how often somebody asked.
	carrier string
	// unreachable are controllers that do not answer, stale why what is listed may be old.
	unreachable []string
	stale       string
	looks       atomic.Int32
	ports       []*controllerv1.FleetPort

	mu sync.Mutex
	// applied are the changes of the definition that were asked for.
	applied []*controllerv1.ApplyDefinitionRequest
	hosts   map[string]*standIn // nil for one that is away
}

// newFleetStand is a controller with these hosts.
func newFleetStand(t *testing.T, hosts map[string]*standIn) *fleetStand {
	t.Helper()
	f := &fleetStand{t: t, socket: filepath.Join(t.TempDir(), "api.sock"), hosts: hosts}
	rpc := connect.NewServer()
	controllerv1connect.RegisterFleetServiceHandler(rpc, f)
	controllerv1connect.RegisterStatusServiceHandler(rpc, f)
	controllerv1connect.RegisterMoveServiceHandler(rpc, f)
	mux := http.NewServeMux()
	connecthttp.Mount(mux, rpc)
	ctx, cancel := context.WithCancel(context.Background())
	mux.HandleFunc("/hosts/{host}/", func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		s := f.hosts[r.PathValue("host")]
		f.mu.Unlock()
		if s == nil {
			w.Header().Set(api.VersionHeader, strconv.Itoa(api.Version))
			_ = connecthttp.NewErrorWriter().Write(w, r, connect.NewError(connect.CodeUnavailable,
				"it is not connected to a controller"))
			return
		}
		http.StripPrefix("/hosts/"+r.PathValue("host"), api.Looking(ctx, s)).ServeHTTP(w, r)
	})
	l, err := net.Listen("unix", f.socket)
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: mux}
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(l) }()
	t.Cleanup(func() { cancel(); _ = srv.Close(); <-done })
	return f
}

// ListHosts lists the hosts.
func (f *fleetStand) ListHosts(context.Context, *controllerv1.ListHostsRequest) (*controllerv1.ListHostsResponse,
	error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := &controllerv1.ListHostsResponse{Revision: 18, Controllers: 1, Unreachable: f.unreachable, Stale: f.stale}
	for name, s := range f.hosts {
		h := &controllerv1.Host{Name: name, State: controllerv1.HostState_HOST_STATE_UP,
			Since: timestamppb.New(time.Now().Add(-time.Hour))}
		if s == nil {
			h.State = controllerv1.HostState_HOST_STATE_DISCONNECTED
		}
		out.Hosts = append(out.Hosts, h)
	}
	slices.SortFunc(out.Hosts, func(a, b *controllerv1.Host) int {
		return bytes.Compare([]byte(a.Name), []byte(b.Name))
	})
	return out, nil
}

// GetDefinition reads the definition.
func (f *fleetStand) GetDefinition(context.Context, *controllerv1.GetDefinitionRequest) (
	*controllerv1.GetDefinitionResponse, error) {
	return &controllerv1.GetDefinitionResponse{Revision: 18, Content: f.definition}, nil
}

// ApplyDefinition takes a change, and says it made revision 19.
func (f *fleetStand) ApplyDefinition(_ context.Context, q *controllerv1.ApplyDefinitionRequest) (
	*controllerv1.ApplyDefinitionResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.applied = append(f.applied, q)
	return &controllerv1.ApplyDefinitionResponse{Revision: 19, Changes: []string{"switch lab added"}}, nil
}

// ListFleetPorts lists what hosts reported last.
func (f *fleetStand) ListFleetPorts(context.Context, *controllerv1.ListFleetPortsRequest) (
	*controllerv1.ListFleetPortsResponse, error) {
	return &controllerv1.ListFleetPortsResponse{Ports: f.ports}, nil
}

// run runs a command that asks the hosts.
func (f *fleetStand) run(args ...string) (stdout, stderr string, status int) {
	f.t.Helper()
	return f.runIn(context.Background(), args...)
}

func (f *fleetStand) runIn(ctx context.Context, args ...string) (stdout, stderr string, status int) {
	f.t.Helper()
	var out bytes.Buffer
	stderr, status = f.runTo(ctx, &out, args...)
	return out.String(), stderr, status
}

// runTo runs a command whose output is looked at meanwhile.
func (f *fleetStand) runTo(ctx context.Context, out io.Writer, args ...string) (stderr string, status int) {
	f.t.Helper()
	var errs bytes.Buffer
	d := cli.Deps{Stdin: &bytes.Buffer{}, Stdout: out, Stderr: &errs, Getenv: func(k string) string {
		return map[string]string{"HEDDLE_CONTROLLER": f.socket, "HEDDLE_RUN_DIR": f.t.TempDir()}[k]
	}}
	status = Run(ctx, d, args)
	return errs.String(), status
}

// says makes sure what a command prints.
func (f *fleetStand) says(status int, out, errs string, args ...string) {
	f.t.Helper()
	gotOut, gotErrs, got := f.run(args...)
	if gotOut != out || gotErrs != errs || got != status {
		f.t.Errorf("%v: status %d\n%s%s\nwanted: status %d\n%s%s", args, got, gotOut, gotErrs, status, out, errs)
	}
}
