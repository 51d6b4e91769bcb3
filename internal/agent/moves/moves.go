package moves

import (
	"slices"
	"time"
)

// Phase is how far a move has come, as a host sees it. The texts are those of the API.
type Phase string

// The phases.
const (
	Prepared  Phase = "prepared"  // the target waits; no copy is there yet
	Copied    Phase = "copied"    // the target has a copy; the guest runs at the source
	Stopped   Phase = "stopped"   // the port is silent at the source
	Active    Phase = "active"    // the guest runs at the target
	Released  Phase = "released"  // the source has no port for the guest any more
	Cancelled Phase = "cancelled" // the target's port is gone, or the guest runs at the source again
)

// Side is the part of a host in a move.
type Side string

// The sides.
const (
	Source Side = "source"
	Target Side = "target"
)

// Says is what the source says about its guest with a copy.
type Says uint8

// What it may say.
const (
	Runs    Says = iota + 1 // the guest runs at the source
	Stops                   // it has stopped: this is the last copy
	Resumes                 // it runs at the source again after it had stopped
)

// Answer is what the target says about a move.
type Answer struct {
	// Confirmed is the highest number of a copy that the target has dealt with, on disk; 0 for none.
	Confirmed uint64
	// Phase is Prepared while the target waits, Active, or Cancelled where the port is gone.
	Phase Phase
	// Generation of the port at the target, where it is active.
	Generation uint64
}

// Step is one step of a move, for people.
type Step struct {
	Phase Phase     `json:"phase"`
	At    time.Time `json:"at"`
	Text  string    `json:"text,omitzero"`
}

// Track is the history of one move on one host.
type Track struct {
	// Move is the id of the move: 32 hexadecimal digits.
	Move string `json:"move"`
	// Host is the id of the other host, HostName its name; "" while it is not known.
	Host     string `json:"host,omitzero"`
	HostName string `json:"hostName,omitzero"`
	Side     Side   `json:"side"`
	Phase    Phase  `json:"phase"`
	Steps    []Step `json:"steps,omitzero"`
	// Confirmed is the number of the newest copy that the target has; 0 for none.
	Confirmed uint64 `json:"confirmed,omitzero"`
	// Last: the target has what the port had when its guest had stopped.
	Last bool `json:"last,omitzero"`
	// Copied is when the newest copy was confirmed.
	Copied time.Time `json:"copied,omitzero"`
	// Problem says what stands in the way; "" for nothing.
	Problem string `json:"problem,omitzero"`
}

// maxSteps bounds the steps that are kept of a move.
const maxSteps = 24

// Reached records a step. A phase that is reached already is no step.
func (t *Track) Reached(p Phase, at time.Time, text string) bool {
	if t.Phase == p {
		return false
	}
	t.Phase = p
	t.Steps = append(slices.Clone(t.Steps), Step{Phase: p, At: at, Text: text})
	if n := len(t.Steps); n > maxSteps { // the first says when the move began
		t.Steps = append(t.Steps[:1:1], t.Steps[n-maxSteps+1:]...)
	}
	return true
}

// Place is where a port stands in the order of the hosts that served its guest: the highest generation says where the
// port is.
type Place struct {
	// Generation is that with which the port served its guest here last; 0 for never.
	Generation uint64 `json:"generation,omitzero"`
	// Serves: the port serves its guest, by the last look at it. Wait is the number of its last wait then.
	Serves bool   `json:"serves,omitzero"`
	Wait   uint32 `json:"wait,omitzero"`
}

// Look takes in whether the port serves its guest now, and the number of its last wait, 0 for none. One that begins to
// serve gets a generation above its own and above heard, the highest one that the host heard of. came is the highest
// one that it heard of as the target of the move by which the guest has come, 0 for none: it may hear that after the
// guest has arrived, and goes above it then.
func (p *Place) Look(serves bool, wait uint32, heard, came uint64) (raised bool) {
	raised = serves && (!p.Serves || wait > p.Wait || came >= p.Generation)
	if raised {
		p.Generation = above(p.Generation, max(heard, came))
		p.Wait = max(p.Wait, wait)
	}
	p.Serves = serves
	return raised
}

// maxGeneration bounds what is believed of another host: a generation grows by one with each move.
const maxGeneration = 1 << 62

// Believed returns a generation that another host or a controller told.
func Believed(generation uint64) uint64 { return min(generation, maxGeneration) }

func above(a, b uint64) uint64 { return max(a, Believed(b)) + 1 }
