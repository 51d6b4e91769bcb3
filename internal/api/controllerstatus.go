package api

import (
	"context"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/api/heddle/controller/v1/controllerv1connect"
)

// ControllerStatus is how a controller is, and what it sees of its cluster.
type ControllerStatus struct {
	Cluster    string    `json:"cluster"`
	Name       string    `json:"name"`
	Controller string    `json:"controller"`
	Version    string    `json:"version"`
	Started    time.Time `json:"started"`
	// Now is the controller's clock.
	Now time.Time `json:"now"`
	// Revision of the definition, and the epoch of the data.
	Revision    int64             `json:"revision"`
	Epoch       int64             `json:"epoch"`
	Controllers []ControllerPlace `json:"controllers"`
	Store       StoreStatus       `json:"store"`
	// Hosts is how many there are in each state.
	Hosts map[string]int `json:"hosts"`
	// Expiring is what ends within 30 days, or has ended.
	Expiring []ExpiryWarning `json:"expiring"`
	// RootStage is how far a rotation of the root is.
	RootStage       string    `json:"rootStage"`
	RootEnds        time.Time `json:"rootEnds"`
	CertificateEnds time.Time `json:"certificateEnds"`
	// DiskFree and DiskSize, in bytes, are of the file system with the controller's directory; 0 for not known.
	DiskFree int64      `json:"diskFree"`
	DiskSize int64      `json:"diskSize"`
	Clock    ClockState `json:"clock"`
	// Findings are what was looked at, and what to do.
	Findings []HealthFinding `json:"findings"`
	// Healthy: no finding is wrong.
	Healthy bool `json:"healthy"`
	// Snapshots are those that it takes by a schedule; nil for no schedule.
	Snapshots *SnapshotState `json:"snapshots,omitempty"`
}

// SnapshotState is how the snapshots are that a controller takes by a schedule.
type SnapshotState struct {
	// Dir is where they are on the controller's machine, Every the time from one to the next.
	Dir   string        `json:"dir"`
	Every time.Duration `json:"every"`
	// Last is when the newest was taken; zero for none.
	Last time.Time `json:"last,omitzero"`
	// Count is how many there are; Size is that of the newest in bytes, 0 for not known.
	Count int   `json:"count"`
	Size  int64 `json:"size"`
	// Failures is how many failed since the controller's start; Problem is why the last one did, "" where it did not.
	Failures int64  `json:"failures"`
	Problem  string `json:"problem,omitempty"`
}

// ControllerPlace is where a controller answers.
type ControllerPlace struct {
	ID      string `json:"id"`
	Address string `json:"address"`
	URL     string `json:"url"`
	Self    bool   `json:"self"`
	Name    string `json:"name,omitempty"`
	// Host is the one on which the controller's machine is a VM on a switch of the cluster; "" where it is not known to
	// be one.
	Host string `json:"host,omitempty"`
}

// StoreStatus is how etcd is.
type StoreStatus struct {
	Embedded bool `json:"embedded"`
	// Stale says why reads may be old.
	Stale    string `json:"stale"`
	Revision int64  `json:"revision"`
	// Size of the largest member's database, InUse what of it is needed, Quota at which writes are refused.
	Size    int64         `json:"size"`
	InUse   int64         `json:"inUse"`
	Quota   int64         `json:"quota"`
	Members []StoreMember `json:"members"`
	Alarms  []string      `json:"alarms"`
	Error   string        `json:"error"`
	// Full: no changes are taken but what only removes, revocations and claims of static ports.
	Full bool `json:"full"`
}

// StoreMember is one of etcd's members.
type StoreMember struct {
	Name     string `json:"name"`
	Leader   bool   `json:"leader"`
	Learner  bool   `json:"learner"`
	Self     bool   `json:"self"`
	Answered bool   `json:"answered"`
	Lag      int64  `json:"lag"`
	Size     int64  `json:"size"`
	InUse    int64  `json:"inUse"`
	Error    string `json:"error"`
}

// ExpiryLevel is how near an end is.
type ExpiryLevel string

// The levels: 30 days, 7 days, and ended.
const (
	ExpirySoon   ExpiryLevel = "soon"
	ExpiryUrgent ExpiryLevel = "urgent"
	ExpiryOver   ExpiryLevel = "over"
)

// ExpiryWarning is about something that ends soon.
type ExpiryWarning struct {
	Subject string      `json:"subject"`
	ID      string      `json:"id"`
	Name    string      `json:"name"`
	Ends    time.Time   `json:"ends"`
	Level   ExpiryLevel `json:"level"`
	Text    string      `json:"text"`
}

// ClockState says whether a clock follows others.
type ClockState string

// The states of clocks.
const (
	ClockUnknown      ClockState = "unknown"
	ClockSynchronised ClockState = "synchronised"
	ClockFree         ClockState = "free"
)

// HealthLevel says how bad a finding is.
type HealthLevel string

// The levels.
const (
	HealthOK      HealthLevel = "ok"      // looked at, nothing to say
	HealthNote    HealthLevel = "note"    // works, and yet somebody should know
	HealthWrong   HealthLevel = "wrong"   // does not work, or will not before long
	HealthUnknown HealthLevel = "unknown" // could not be looked at
)

// HealthFinding is what one check has to say about one thing.
type HealthFinding struct {
	Check string      `json:"check"`
	Level HealthLevel `json:"level"`
	Text  string      `json:"text"`
	// Remedy says what to do; "" where there is nothing.
	Remedy string `json:"remedy"`
}

// statusCalls are those of how the controllers are.
type statusCalls struct {
	fleet *Fleet
	rpc   controllerv1connect.StatusServiceClient
}

// Status says how the controller is.
func (s statusCalls) Status(ctx context.Context) (*ControllerStatus, error) {
	out, err := call[ControllerStatus, controllerv1.GetControllerStatusRequest,
		controllerv1.GetControllerStatusResponse](ctx, s.fleet, s.rpc.GetControllerStatus, nil)
	return &out, err
}
