package api

import (
	"context"
	"time"
)

// UplinkService takes uplinks out of use for maintenance.
type UplinkService interface {
	// Maintain drains or blocks an uplink, or all members of a LAG, or takes it back into use.
	Maintain(context.Context, Maintain) (*Maintained, error)
}

// UplinkUse is what an uplink may be used for.
type UplinkUse string

// What uplinks may be used for.
const (
	InUse     UplinkUse = "in-use"  // by its teams
	IsDrained UplinkUse = "drained" // by no team: ports use others, and arriving frames are accepted
	IsBlocked UplinkUse = "blocked" // drained, and no frame passes in either direction
)

// Maintain is a request to change an uplink's use.
type Maintain struct {
	// Uplink names an uplink, or a LAG: then all of its members.
	Uplink string `json:"uplink"`
	// Switch is the switch of the uplink; "" if only one switch has an uplink of that name.
	Switch string    `json:"switch,omitempty"`
	Use    UplinkUse `json:"use"`
	// Force cuts off ports that have no other uplink.
	Force  bool  `json:"force,omitempty"`
	DryRun bool  `json:"dryRun"`
	ReadAt int64 `json:"readAt"` // as in Apply
	Window
}

// Maintained is the result of a request, or of its dry run.
type Maintained struct {
	Switch string `json:"switch"`
	// Uplinks are the named one, or the members of the LAG.
	Uplinks []string  `json:"uplinks"`
	Use     UplinkUse `json:"use"`
	// Moves are the ports whose frames leave by other uplinks than before, CutOff those that no longer have one.
	Moves  []UplinkMove `json:"moves"`
	CutOff []string     `json:"cutOff"`
	// Applied are the changes, and how they were made.
	Applied *Applied `json:"applied"`
}

// UplinkMove is a port whose frames leave by other uplinks than before.
type UplinkMove struct {
	Port string `json:"port"`
	// Host: the port is an interface of the host's own.
	Host bool `json:"host,omitempty"`
	// From and To are the uplinks by which its frames may leave: several with a hashing policy.
	From []string `json:"from"`
	To   []string `json:"to"`
}

// UplinkMaintenance says that an uplink is drained or blocked.
type UplinkMaintenance struct {
	Use UplinkUse `json:"use"`
	// ByCommand: a command did it, at Since; otherwise the configuration does.
	ByCommand bool      `json:"byCommand"`
	Since     time.Time `json:"since,omitzero"`
}

// Maintain drains or blocks an uplink, or takes it back into use.
func (c *Client) Maintain(ctx context.Context, q Maintain) (*Maintained, error) {
	return ask[*Maintained](ctx, c, c.uplinks.MaintainUplink, q)
}
