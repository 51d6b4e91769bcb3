package api

import (
	"context"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/diagnose"
)

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
	// Unsure are hosts of which it is not known whether they did, with why.
	Unsure []HostProblem `json:"unsure"`
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
	// Notes are what could not be done after the change was written: it counts all the same.
	Notes []string `json:"notes"`
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
