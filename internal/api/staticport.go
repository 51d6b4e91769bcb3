package api

import (
	"context"

	controllerv1 "heddle/api/heddle/controller/v1"
)

// StaticPort is a static port of a cluster, or a port that should be one and is not.
type StaticPort struct {
	// Port is its id, which no other port has or had; "" for a conflict port without one.
	Port      string `json:"port"`
	Switch    string `json:"switch"`
	PortGroup string `json:"portGroup"`
	// Bound: it belongs to an adapter.
	Bound   bool   `json:"bound"`
	VM      string `json:"vm,omitempty"`
	Adapter string `json:"adapter,omitempty"`
	MAC     string `json:"mac,omitempty"`
	// Host where it is bound, Name what it is called there; "" where it is not connected.
	Host string `json:"host,omitempty"`
	Name string `json:"name,omitempty"`
	// State as the host shows it; "" where it is not connected.
	State    string `json:"state,omitempty"`
	Conflict string `json:"conflict,omitempty"`
	// Stale: its host is not connected; this is what it reported last.
	Stale bool `json:"stale,omitempty"`
	// Label and Description are those of the definition, and Settings the policies that it sets for this port, in the
	// words of a configuration file, as JSON.
	Label       string `json:"label,omitempty"`
	Description string `json:"description,omitempty"`
	Settings    string `json:"settings,omitempty"`
	// Binding tells the binding of the adapter's static port from every other one, also of the same host: 16
	// hexadecimal digits, or "none" for an adapter without a static port. "" for a free port, and from an earlier
	// version.
	Binding string `json:"binding,omitempty"`
}

// StaticPortQuery selects static ports; "" for all.
type StaticPortQuery struct {
	Switch    string `json:"switch"`
	PortGroup string `json:"portGroup"`
	Host      string `json:"host"`
}

// SettlePort says on which host an adapter has its static port.
type SettlePort struct {
	VM      string `json:"vm"`
	Adapter string `json:"adapter"`
	Host    string `json:"host"`
	// From is the host where the port is bound by what the caller knows; "" for whichever. It is taken from no other.
	From string `json:"from,omitempty"`
	// Binding is that of the adapter's static port by what the caller knows; "" for whichever. A port with another one
	// is left alone.
	Binding string `json:"binding,omitempty"`
	// Force takes the port from a lost host that holds it by its lease.
	Force bool `json:"force"`
}

// StaticPorts are static ports of a cluster, and conflict ports.
type StaticPorts struct {
	Ports []StaticPort `json:"ports"`
	// Stale says why all of it may be old; "" where it is current.
	Stale string `json:"stale,omitempty"`
}

// StaticPorts lists the static ports of the cluster, and the conflict ports.
func (f *Fleet) StaticPorts(ctx context.Context, q StaticPortQuery) (*StaticPorts, error) {
	out, err := call[StaticPorts, controllerv1.ListStaticPortsRequest, controllerv1.ListStaticPortsResponse](ctx, f,
		f.static.ListStaticPorts, q)
	return &out, err
}

// ReleaseStatic names a static port that is to be nobody's.
type ReleaseStatic struct {
	Port string `json:"port"`
	// VM and Adapter are whose it is by what the caller knows; "" for anybody's. It is taken from nobody else.
	VM      string `json:"vm,omitempty"`
	Adapter string `json:"adapter,omitempty"`
	// Force takes the port from a lost host that holds it by its lease.
	Force bool `json:"force"`
}

// ReleasePort makes a static port nobody's; by force also one that a lost host holds by its lease. The error is
// NotFound where the port is nobody's, or another's than was said.
func (f *Fleet) ReleasePort(ctx context.Context, q ReleaseStatic) (*StaticPort, error) {
	out, err := call[struct {
		Port StaticPort `json:"port"`
	}, controllerv1.ReleaseStaticPortRequest, controllerv1.ReleaseStaticPortResponse](ctx, f,
		f.static.ReleaseStaticPort, q)
	return &out.Port, err
}

// SettlePort binds the port of an adapter on a host. It is refused where the port is bound elsewhere than From, or
// otherwise than Binding, or was bound anew while it was settled.
func (f *Fleet) SettlePort(ctx context.Context, q SettlePort) (*StaticPort, error) {
	out, err := call[struct {
		Port StaticPort `json:"port"`
	}, controllerv1.SettleStaticPortRequest, controllerv1.SettleStaticPortResponse](ctx, f, f.static.SettleStaticPort,
		q)
	return &out.Port, err
}
