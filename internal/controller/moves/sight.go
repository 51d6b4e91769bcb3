package moves

import (
	"context"
	"log/slog"

	"connectrpc.com/connect/v2"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/platform/access"
	"heddle/internal/platform/access/roles"
	"heddle/internal/slice"
	"heddle/internal/slice/fields"
)

// Host is a host of the cluster, as far as moves need it.
type Host struct {
	// Shown is the host as people see it.
	Shown *controllerv1.Host
	// Meant is as that of a Port.
	Meant string
	// Content is what the host is to have by the definition, Lacks what of it its agent does not know.
	Content *slice.Set
	Lacks   []fields.Lack
}

// serves reports whether the host may serve a port group, as SWITCH/GROUP.
func (h *Host) serves(group string) bool {
	_, ok := h.Content.Get(slice.Key{Kind: slice.PortGroup, Name: group})
	return ok
}

// Isolated is why a switch of the host is cut off from the physical network; "" where it is not.
func (h *Host) Isolated(sw string) string {
	for _, s := range h.Shown.GetSwitches() {
		if s.GetName() == sw {
			return s.GetIsolated()
		}
	}
	return ""
}

// Sight is what all controllers know of hosts at one moment.
type Sight struct {
	// Ports are those of all hosts, by the hosts' names.
	Ports []Port
	// Host finds a host by its name; nil for none.
	Host func(name string) (*Host, error)
	// Away are the controllers that do not answer; Stale says why all of it may be old, "" where it is not.
	Away  []string
	Stale string
}

// Options are what a service needs.
type Options struct {
	Log *slog.Logger
	// Look asks all controllers what there is; confirmed has the majority say whether it is current.
	Look func(ctx context.Context, confirmed bool) *Sight
	// Agent makes one call at a host's agent. The error says which host it is and what it lacks.
	Agent func(ctx context.Context, host string, do func(context.Context, *connect.Client) error) error
}

// Service answers people about moves.
type Service struct{ Options }

// operates refuses who may not operate the ports of that port group.
func operates(ctx context.Context, sw, group string) error {
	return access.Need(ctx, roles.Operate, "", roles.Scope{Switch: sw, PortGroup: group})
}
