package api

import (
	"context"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
)

// LocateQuery selects ports by the VM's UUID, and by the adapter or the port's name; "" for all.
type LocateQuery struct {
	VM      string `json:"vm"`
	Adapter string `json:"adapter"`
	Port    string `json:"port"`
}

// LocatedPorts are adapters of VMs and where their ports are.
type LocatedPorts struct {
	Ports []LocatedPort `json:"ports"`
	// Unreachable are the names of controllers that do not answer.
	Unreachable []string `json:"unreachable"`
	// Stale says why all of it may be old; "" where it is current.
	Stale string `json:"stale,omitempty"`
}

// LocatedPort is an adapter of a VM, and the hosts that have a port for it.
type LocatedPort struct {
	VM      string `json:"vm"`
	Adapter string `json:"adapter"`
	// Host where the port is active, with the highest generation; "" where no host says so.
	Host       string `json:"host"`
	Generation uint64 `json:"generation"`
	// Instances are the ports of that adapter, the highest generation first.
	Instances []PortInstance `json:"instances"`
	// Conflict says what is wrong; "" for nothing.
	Conflict string `json:"conflict,omitempty"`
}

// PortInstance is the port of an adapter on one host.
type PortInstance struct {
	Host      string `json:"host"`
	Switch    string `json:"switch"`
	Name      string `json:"name"`
	PortGroup string `json:"portGroup"`
	// State as the host shows it.
	State      string `json:"state"`
	Generation uint64 `json:"generation"`
	// Active: the guest runs there, as the host reports; Why says by what.
	Active bool   `json:"active"`
	Why    string `json:"why"`
	// Stale: the host is not connected; this is what it reported last.
	Stale bool      `json:"stale,omitempty"`
	Since time.Time `json:"since,omitzero"`
}

// LocatePorts says on which hosts ports are, by all controllers.
func (f *Fleet) LocatePorts(ctx context.Context, q LocateQuery) (*LocatedPorts, error) {
	out, err := call[LocatedPorts, controllerv1.LocatePortsRequest, controllerv1.LocatePortsResponse](ctx, f,
		f.moves.LocatePorts, q)
	return &out, err
}
