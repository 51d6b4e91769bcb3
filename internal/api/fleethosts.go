package api

import (
	"context"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
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
	// Drift is what Differences says, with since when; of a host that is away, by what it had active when it went.
	Drift []HostDrift `json:"drift"`
	// ActiveRevision is the revision of the definition that was active there; 0 where that is not known.
	ActiveRevision int64 `json:"activeRevision"`
}

// DriftKind says how an object on a host is not as the definition has it.
type DriftKind string

// The kinds of drift.
const (
	DriftMissing DriftKind = "missing"
	DriftOlder   DriftKind = "older"
	DriftExtra   DriftKind = "extra" // the host still has it
)

// HostDrift is an object that is not active on a host as the definition has it.
type HostDrift struct {
	// Object is its kind and name, such as "portGroup dvs/web".
	Object string    `json:"object"`
	Kind   DriftKind `json:"kind"`
	// Since is when the definition was changed to what the host does not have; zero where the history does not say.
	Since time.Time `json:"since,omitzero"`
	// Revision is that of this change, Who made it, and Message why.
	Revision int64  `json:"revision"`
	Who      string `json:"who"`
	Message  string `json:"message"`
}

// Sync sends a host, "" for all, again what it is to have, and waits so long for what becomes of that. look only says
// what is different.
func (f *Fleet) Sync(ctx context.Context, host string, wait time.Duration, look bool) (*SyncedHosts, error) {
	out, err := call[SyncedHosts, controllerv1.SyncHostsRequest, controllerv1.SyncHostsResponse](ctx, f,
		f.rpc.SyncHosts, struct {
			Host string        `json:"host"`
			Wait time.Duration `json:"wait"`
			Look bool          `json:"look"`
		}{host, wait, look})
	return &out, err
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
