package api

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/api/heddle/controller/v1/controllerv1connect"
	"heddle/internal/api/wire"
	"heddle/internal/diagnose"
)

// HostState is the state of a host towards the definition.
type HostState string

// The states of hosts.
const (
	HostUp           HostState = "up"
	HostPending      HostState = "pending"     // it was sent the newest version, and has not answered yet
	HostOutOfSync    HostState = "out-of-sync" // it cannot activate the newest version
	HostWarning      HostState = "warning"     // it has the newest version active, and reports a problem
	HostDisconnected HostState = "disconnected"
	HostDown         HostState = "down"     // no uplink of one of its switches can be used: its guests are cut off
	HostReverted     HostState = "reverted" // the newest version cut it off from its controllers, and it went back
)

// FleetHost is one host of a cluster, as a controller sees it.
type FleetHost struct {
	Name   string            `json:"name"`
	ID     string            `json:"id"`
	Labels map[string]string `json:"labels"`
	State  HostState         `json:"state"`
	// Agent is the version of the host's agent.
	Agent string `json:"agent"`
	// Revision is the revision that is active there, if known.
	Revision int64 `json:"revision"`
	// Problems are the reasons why the host is not up.
	Problems []string `json:"problems"`
	// Unknown are fields of the definition that its agent does not know: they are not active there.
	Unknown []string `json:"unknown"`
	// Since is when the host connected, or disconnected.
	Since time.Time `json:"since,omitzero"`
	// Ports is how many ports of distributed switches the host has.
	Ports int `json:"ports"`
	// Address is the address from which the host is connected.
	Address string `json:"address"`
	// Controller is the name of the one that it is connected to, or was.
	Controller string `json:"controller"`
	// Stale: that controller does not answer, this is what was known last.
	Stale bool `json:"stale"`
	// HostPorts are those that the definition gives the host.
	HostPorts []DefinedHostPort `json:"hostPorts"`
	// Switches are its distributed switches with their uplinks, as it reported them last.
	Switches []HostSwitch `json:"switches"`
}

// HostSwitch is how a distributed switch is on a host.
type HostSwitch struct {
	Name    string       `json:"name"`
	Uplinks []HostUplink `json:"uplinks"`
	// Isolated says why no frame passes between the switch and the physical network; "" where some uplink is up.
	Isolated string `json:"isolated"`
	// Maintained: that is so because the uplinks were taken out of use.
	Maintained bool `json:"maintained"`
}

// HostUplink is an uplink of a host, as it reported it last.
type HostUplink struct {
	Name   string    `json:"name"`
	Device string    `json:"device"`
	State  PortState `json:"state"`
	Reason string    `json:"reason"`
}

// FleetHosts are the hosts of a cluster.
type FleetHosts struct {
	Hosts []FleetHost `json:"hosts"`
	// Revision is the revision of the definition.
	Revision int64 `json:"revision"`
	// Controllers is how many the cluster has, Unreachable the names of those that do not answer.
	Controllers int      `json:"controllers"`
	Unreachable []string `json:"unreachable"`
	// Stale says why all of it may be old; "" where it is current.
	Stale string `json:"stale,omitempty"`
}

// FleetPort is a port of a distributed switch, and where it is.
type FleetPort struct {
	Host      string `json:"host"`
	Switch    string `json:"switch"`
	Name      string `json:"name"`
	PortGroup string `json:"portGroup"`
	State     string `json:"state"`
	MAC       string `json:"mac"`
	Device    string `json:"device"`
	// Stale: the host is not connected; this is its last report.
	Stale bool `json:"stale"`
	// VM and Adapter are whose port it is; "" where nobody said.
	VM      string `json:"vm"`
	Adapter string `json:"adapter"`
}

// FleetPortQuery selects ports; "" for all.
type FleetPortQuery struct {
	Host      string `json:"host"`
	Switch    string `json:"switch"`
	PortGroup string `json:"portGroup"`
}

// SyncedHosts are hosts that were sent again what they are to have.
type SyncedHosts struct {
	Hosts []SyncedHost `json:"hosts"`
	// Unreachable are the names of controllers that do not answer.
	Unreachable []string `json:"unreachable"`
}

// SyncedHost says how a host followed the definition before and after.
type SyncedHost struct {
	Host   string    `json:"host"`
	Before HostState `json:"before"`
	// Differences are the objects that were not active there as the definition has them.
	Differences []string  `json:"differences"`
	State       HostState `json:"state"`
	// Problems say why it is not up.
	Problems []string `json:"problems"`
}

// Sync sends a host, "" for all, again what it is to have, and waits so long for what becomes of that.
func (f *Fleet) Sync(ctx context.Context, host string, wait time.Duration) (*SyncedHosts, error) {
	out, err := call[SyncedHosts, controllerv1.SyncHostsRequest, controllerv1.SyncHostsResponse](ctx, f,
		f.rpc.SyncHosts, struct {
			Host string        `json:"host"`
			Wait time.Duration `json:"wait"`
		}{host, wait})
	return &out, err
}

// Define replaces the definition of a cluster by a file.
type Define struct {
	File    string `json:"file"`
	Content string `json:"content"`
	// Revision is the one on which the change is based; 0 for the present one, whatever it is.
	Revision int64 `json:"revision"`
	DryRun   bool  `json:"dryRun"`
	// Force removes port groups that ports still use.
	Force bool `json:"force"`
	// Wait is how long to wait for the hosts that are connected.
	Wait time.Duration `json:"wait"`
	// AllowUnprotected makes a change of which some hosts do not know a security field.
	AllowUnprotected bool `json:"allowUnprotected"`
	// Message is the reason of the change, for the history.
	Message string `json:"message"`
	// Restore brings back the definition of that revision instead of a file; 0 for a file.
	Restore int64 `json:"restore"`
	// Together: all hosts concerned change at one instant, or none does; nil for each as soon as it can.
	Together *Together `json:"together"`
	// Stages: the hosts change one stage after the other; nil for all at once.
	Stages *InStages `json:"stages"`
	// Supersede ends rollouts that are open and change the same switches, in favour of this change.
	Supersede bool `json:"supersede"`
}

// Together is how hosts make a change at one instant.
type Together struct {
	// ExceptAway: hosts that are not connected take the change when they are back.
	ExceptAway bool `json:"exceptAway"`
	// Lead is how long after the decision the instant is, 1 s to 1 min.
	Lead time.Duration `json:"lead"`
	// Patience is how long hosts may take to prepare the change, at most 1 min.
	Patience time.Duration `json:"patience"`
}

// ChangedTogether is what became of a change that hosts made together.
type ChangedTogether struct {
	ID string `json:"id"`
	// At is the instant, by the controller's clock.
	At time.Time `json:"at"`
	// Hosts is how many were ready.
	Hosts int `json:"hosts"`
	// Announced is within what time of each other they were to change, Spread within which they did, as they told.
	Announced time.Duration `json:"announced"`
	Spread    time.Duration `json:"spread"`
	// Late are hosts that did not change at the instant, with why.
	Late []HostProblem `json:"late"`
	// Away are hosts that were not connected.
	Away []string `json:"away"`
	// Prepared is how long it took until all were ready, Decided until that was written.
	Prepared time.Duration `json:"prepared"`
	Decided  time.Duration `json:"decided"`
}

// Defined is the result of a change of the definition, or of its dry run.
type Defined struct {
	Revision int64 `json:"revision"`
	// Changes are the changes of objects, one line each.
	Changes []string `json:"changes"`
	// Hosts are the hosts whose switches change.
	Hosts []string `json:"hosts"`
	// Waiting are the hosts on which the change is not active yet, with the reason.
	Waiting []HostProblem `json:"waiting"`
	// Unknown are hosts that do not know fields of the change, with these: they are not active there.
	Unknown []HostProblem `json:"unknown"`
	// Kept are fields that the controller does not know, and that stay as they are.
	Kept []string `json:"kept"`
	// Objects that change, field by field.
	Objects []DefinedObject `json:"objects"`
	// Affected are the port groups whose ports change, and AtRisk the hosts whose own addresses are on such ports; of a
	// dry run.
	Affected []AffectedGroup `json:"affected"`
	AtRisk   []HostProblem   `json:"atRisk"`
	// HostPorts of hosts that change, with their addresses.
	HostPorts []HostPortChange `json:"hostPorts"`
	// Foreseen is, of a dry run, what hosts would newly lose of what their ports sent lately; nil of an older
	// controller, and for who may not view the whole cluster.
	Foreseen *FleetForeseen `json:"foreseen,omitempty"`
	// Together is what became of a change that hosts made together; nil for another one.
	Together *ChangedTogether `json:"together"`
	// Rollout is the one that a change in stages began, or would begin; nil for another change.
	Rollout *Rollout `json:"rollout"`
	// Superseded are the ids of the rollouts that the change ended.
	Superseded []string `json:"superseded"`
}

// FleetForeseen is what hosts would newly lose of what their ports sent lately.
type FleetForeseen struct {
	// Losses are what would be lost, the most frames first. More is how many are not listed.
	Losses []HostLoss `json:"losses"`
	More   int        `json:"more"`
	// Looked, Left and Counted are the sums of what the hosts say (diagnose.Foreseen).
	Looked  int `json:"looked"`
	Left    int `json:"left"`
	Counted int `json:"counted"`
	// Hosts is how many hosts answered, Unasked those that did not, with why. UnaskedMore is how many of these are not
	// listed.
	Hosts       int           `json:"hosts"`
	Unasked     []HostProblem `json:"unasked"`
	UnaskedMore int           `json:"unaskedMore"`
}

// HostLoss is what a host would newly lose of one sender.
type HostLoss struct {
	Host string        `json:"host"`
	Loss diagnose.Loss `json:"loss"`
}

// HostPortChange is what a change of the definition does to a host port.
type HostPortChange struct {
	Host string `json:"host"`
	Name string `json:"name"`
	// Change is added, changed or removed.
	Change    string `json:"change"`
	Switch    string `json:"switch"`
	PortGroup string `json:"portGroup"`
	// Addresses are those with the change, Before those without it.
	Addresses []string `json:"addresses"`
	Before    []string `json:"before"`
}

// DefinedHostPort is a host port that the definition gives a host.
type DefinedHostPort struct {
	Name      string   `json:"name"`
	Switch    string   `json:"switch"`
	PortGroup string   `json:"portGroup"`
	Addresses []string `json:"addresses"`
}

// DefinedObject is what a change of the definition does to an object.
type DefinedObject struct {
	// Kind is switch, portGroup, template, hostEntry or staticPort; the name of a port group is SWITCH/GROUP.
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Change is added, changed or removed.
	Change string         `json:"change"`
	Fields []DefinedField `json:"fields"`
}

// DefinedField is another value of a field, in JSON; "" for none.
type DefinedField struct {
	Field string `json:"field"`
	Old   string `json:"old"`
	New   string `json:"new"`
}

// AffectedGroup is a port group with ports that a change concerns.
type AffectedGroup struct {
	Switch    string `json:"switch"`
	PortGroup string `json:"portGroup"`
	Hosts     int    `json:"hosts"`
	Ports     int    `json:"ports"`
	// Some of the ports, as HOST/PORT.
	Some []string `json:"some"`
}

// HostProblem is a reason why a host does not have the definition active.
type HostProblem struct {
	Host     string   `json:"host"`
	Problems []string `json:"problems"`
}

// Definition is the definition that a cluster's controllers keep.
type Definition struct {
	Revision int64  `json:"revision"`
	Epoch    int64  `json:"epoch"`
	Content  string `json:"content"` // in YAML
	// Stale says why it may be old; "" where it is current.
	Stale string `json:"stale,omitempty"`
}

// JoinTerms are the terms of a token by which a host joins.
type JoinTerms struct {
	// Labels are the labels of the host.
	Labels map[string]string `json:"labels"`
	// Lasts is how long the token is valid; 0 for an hour.
	Lasts time.Duration `json:"lasts"`
}

// JoinToken lets one host join.
type JoinToken struct {
	Token   string    `json:"token"`
	Expires time.Time `json:"expires"`
}

// Fleet talks to a controller.
type Fleet struct {
	path    string
	base    string            // of URLs
	through http.RoundTripper // the transport of its connections
	codec   wire.Codec
	rpc     controllerv1connect.FleetServiceClient
	members controllerv1connect.MemberServiceClient
	accessCalls
	statusCalls
	fleetMoveCalls
	rootCalls
	historyCalls
	backupCalls
	rolloutCalls
	// static is for static ports.
	static controllerv1connect.StaticPortServiceClient
	// moves is for ports that move from host to host.
	moves controllerv1connect.MoveServiceClient
}

// NewFleet makes a client of the controller behind a socket. It does not connect yet; each call does.
func NewFleet(socket string) *Fleet {
	return newFleet(socket, "http://controller", dialer(socket))
}

// newFleet makes a client of the controller at path, whose calls have URLs that begin with base.
func newFleet(path, base string, through http.RoundTripper) *Fleet {
	f := &Fleet{path: path, base: base, through: through}
	rpc := connect.NewClient(connecthttp.NewTransport(&http.Client{Transport: through}, base,
		connecthttp.WithReadMaxBytes(maxAnswer), connecthttp.WithSendMaxBytes(maxBody), connecthttp.WithCompressors()))
	f.rpc = controllerv1connect.NewFleetServiceClient(rpc)
	f.members = controllerv1connect.NewMemberServiceClient(rpc)
	f.accessCalls = accessCalls{f, controllerv1connect.NewAccessServiceClient(rpc)}
	f.rootCalls = rootCalls{f, controllerv1connect.NewRootServiceClient(rpc)}
	f.historyCalls = historyCalls{f, controllerv1connect.NewHistoryServiceClient(rpc)}
	f.backupCalls = backupCalls{f, controllerv1connect.NewBackupServiceClient(rpc)}
	f.rolloutCalls = rolloutCalls{f, controllerv1connect.NewRolloutServiceClient(rpc)}
	f.statusCalls = statusCalls{f, controllerv1connect.NewStatusServiceClient(rpc)}
	f.fleetMoveCalls = fleetMoveCalls{f, controllerv1connect.NewMoveServiceClient(rpc)}
	f.static = controllerv1connect.NewStaticPortServiceClient(rpc)
	f.moves = controllerv1connect.NewMoveServiceClient(rpc)
	return f
}

// call sends the request q to a controller, nil for an empty one, and reads the answer.
func call[T, Q, R any, PQ message[Q], PR message[R]](ctx context.Context, f *Fleet,
	do func(context.Context, PQ) (PR, error), q any) (answer T, err error) {
	m := PQ(new(Q))
	if err := f.codec.Put(q, m); err != nil {
		return answer, NewError(Invalid, err.Error())
	}
	r, err := do(ctx, m)
	if err != nil {
		return answer, f.explain(ctx, err)
	}
	if err := f.codec.Get(r, &answer); err != nil {
		return answer, fmt.Errorf("read the controller's answer: %w", err)
	}
	return answer, nil
}

// ErrNoController means that no controller is running there.
var ErrNoController = errors.New("no controller answers")

// unreachable reports whether an error means that the other side could not be reached.
func unreachable(err error) bool {
	var network *net.OpError
	return errors.As(err, &network)
}

// explain converts the error of a call for people.
func (f *Fleet) explain(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("gave up waiting for the controller at %s, the change may be made or not: %w", f.path,
			ctx.Err())
	case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%w at %s: start heddle-controller there, or name another with --controller or "+
			"HEDDLE_CONTROLLER", ErrNoController, f.path)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("no permission for the controller's socket %s: run the command as root", f.path)
	case unreachable(err):
		return fmt.Errorf("ask the controller at %s: %w", f.path, err)
	}
	switch text := connectText(err); connect.CodeOf(err) {
	case connect.CodeInvalidArgument, connect.CodeFailedPrecondition, connect.CodeAborted, connect.CodeAlreadyExists:
		return NewError(Invalid, text)
	case connect.CodeNotFound:
		return NewError(NotFound, text)
	default:
		return fmt.Errorf("the controller at %s: %s", f.path, text)
	}
}

// connectText returns the other side's text of an error.
func connectText(err error) string {
	var e *connect.Error
	if errors.As(err, &e) {
		return e.Message()
	}
	return err.Error()
}

// Hosts returns the hosts of the cluster.
func (f *Fleet) Hosts(ctx context.Context) (*FleetHosts, error) {
	out, err := call[FleetHosts, controllerv1.ListHostsRequest, controllerv1.ListHostsResponse](ctx, f,
		f.rpc.ListHosts, nil)
	return &out, err
}

// RemoveHost removes a host from the cluster.
func (f *Fleet) RemoveHost(ctx context.Context, name string) error {
	_, err := call[struct{}, controllerv1.RemoveHostRequest, controllerv1.RemoveHostResponse](ctx, f, f.rpc.RemoveHost,
		struct {
			Name string `json:"name"`
		}{name})
	return err
}

// RetryHost sends a host again the version from which it went back, and gives its revision.
func (f *Fleet) RetryHost(ctx context.Context, name string) (int64, error) {
	out, err := call[struct {
		Revision int64 `json:"revision"`
	}, controllerv1.RetryHostRequest, controllerv1.RetryHostResponse](ctx, f, f.rpc.RetryHost,
		struct {
			Name string `json:"name"`
		}{name})
	return out.Revision, err
}

// Ports returns the ports of the distributed switches on all hosts.
func (f *Fleet) Ports(ctx context.Context, q FleetPortQuery) ([]FleetPort, error) {
	out, err := call[struct {
		Ports       []FleetPort `json:"ports"`
		Unreachable []string    `json:"unreachable"`
		Stale       string      `json:"stale"`
	}, controllerv1.ListFleetPortsRequest, controllerv1.ListFleetPortsResponse](ctx, f, f.rpc.ListFleetPorts, q)
	return out.Ports, err
}

// Define replaces the definition by a file.
func (f *Fleet) Define(ctx context.Context, q Define) (*Defined, error) {
	out, err := call[Defined, controllerv1.ApplyDefinitionRequest, controllerv1.ApplyDefinitionResponse](ctx, f,
		f.rpc.ApplyDefinition, q)
	return &out, err
}

// Definition returns the definition.
func (f *Fleet) Definition(ctx context.Context) (*Definition, error) {
	out, err := call[Definition, controllerv1.GetDefinitionRequest, controllerv1.GetDefinitionResponse](ctx, f,
		f.rpc.GetDefinition, nil)
	return &out, err
}

// JoinToken makes a token by which one host may join.
func (f *Fleet) JoinToken(ctx context.Context, q JoinTerms) (*JoinToken, error) {
	out, err := call[JoinToken, controllerv1.CreateJoinTokenRequest, controllerv1.CreateJoinTokenResponse](ctx, f,
		f.rpc.CreateJoinToken, q)
	return &out, err
}
