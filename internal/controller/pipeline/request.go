package pipeline

import (
	"context"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/addresses"
	"heddle/internal/controller/definition"
	"heddle/internal/controller/inventory"
	"heddle/internal/platform/store"
	"heddle/internal/slice"
)

// Request is a change of the definition that is asked for.
type Request struct {
	*controllerv1.ApplyDefinitionRequest
	// Source is where the definition that is wanted comes from.
	Source Source
	// Base refuses a change that was made on another revision than the present one; nil for one made on any.
	Base func(current int64) error
	// IDs are identifiers for objects that are new; the others get one that no object had.
	IDs map[slice.Key]string
	// Addresses are those of hosts that have none here.
	Addresses map[string][]inventory.Granted
	// With are written in the transaction from which on the change counts.
	With []store.Change
	// Imports: it is a backup that is imported. Its static ports are there already, but in a dry run.
	Imports bool
	// TakesBack is the rollout whose change is taken back, for the person TakesBackFor; "" for by itself.
	TakesBack, TakesBackFor string
}

// Source is where a definition that is wanted comes from: a file, an earlier revision, the present one without a
// rollout's change.
type Source interface {
	// Parse reads what was sent, before the present definition is read.
	Parse(ctx context.Context) error
	// Wanted is the definition that is wanted in place of the present one. Kept says, a line each, what of the present
	// one stays that the source does not know. IDs are identifiers for objects that are new.
	Wanted(have *slice.Set) (Wanted, error)
}

// Wanted is a definition that is wanted.
type Wanted struct {
	Next *slice.Set
	Kept []string
	IDs  map[slice.Key]string
}

// Plan is a change as far as it is known. What passes between the stages and between the parts is here.
type Plan struct {
	*Request
	// Base is the revision that the change is made on, Have the definition of then, Versions those of its objects.
	Base     int64
	Have     *slice.Set
	Versions map[slice.Key]int64
	// Next is the definition that is wanted; a part that judges may complete it.
	Next *slice.Set
	// Change and After are known once the definition is judged.
	Change slice.Change
	After  *inventory.Inventory
	// Granted are the hosts' addresses, GrantedObjects the change of their objects.
	Granted        *addresses.Grant
	GrantedObjects slice.Change
	// Ports is what the change means for static ports.
	Ports definition.Ports
	// Way is what the history says of how hosts make the change, Ends which rollouts end by it. Restores is the
	// revision that it brings back.
	Way      string
	Ends     []string
	Restores int64
	// Answer is what the caller is told.
	Answer *controllerv1.ApplyDefinitionResponse
}

// Objects are the changes of all objects that count with the definition.
func (p *Plan) Objects() slice.Change {
	return slice.Change{Put: append(p.Change.Put[:len(p.Change.Put):len(p.Change.Put)], p.GrantedObjects.Put...),
		Removed: append(p.Change.Removed[:len(p.Change.Removed):len(p.Change.Removed)], p.GrantedObjects.Removed...)}
}
