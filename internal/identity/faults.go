package identity

import (
	"fmt"
)

// TokenFault is why a token is refused.
type TokenFault uint8

// The faults of tokens. Their words are part of the API.
const (
	// Mistyped: the text is no whole token, whatever the cluster knows.
	Mistyped TokenFault = iota + 1
	// Unknown: the cluster has no such token, or its secret is another one.
	Unknown
	// Expired: its time is over.
	Expired
	// Used: a host has joined with it.
	Used
	// WrongCluster: it is of another cluster.
	WrongCluster
	// NotAllowed: what is asked for goes beyond what the token allows.
	NotAllowed
	// Unconfirmed: it is of a snapshot from which the state was restored, and nobody has confirmed it since.
	Unconfirmed
)

// String is the fault's word.
func (f TokenFault) String() string {
	switch f {
	case Mistyped:
		return "mistyped"
	case Unknown:
		return "unknown"
	case Expired:
		return "expired"
	case Used:
		return "used"
	case WrongCluster:
		return "wrong-cluster"
	case NotAllowed:
		return "not-allowed"
	case Unconfirmed:
		return "not-confirmed"
	}
	return fmt.Sprintf("fault %d", uint8(f))
}

// TokenError is a token that is refused.
type TokenError struct {
	Fault TokenFault
	// ID is empty where the text could not be read.
	ID TokenID
	// Err says more, if there is more to say.
	Err error
}

// Error says what is wrong, and what to do.
func (e *TokenError) Error() string {
	which := "the token"
	if e.ID != "" {
		which += " " + string(e.ID)
	}
	why := ""
	if e.Err != nil {
		why = ": " + e.Err.Error()
	}
	switch e.Fault {
	case Mistyped:
		return which + " is mistyped or not whole" + why + "; copy it again, in one line"
	case Unknown:
		return which + " is unknown to this cluster, or was withdrawn; ask for a new one"
	case Expired:
		return which + " has expired" + why + "; ask for a new one"
	case Used:
		return which + " has been used" + why + "; each host needs its own: ask for a new one"
	case WrongCluster:
		return which + " is of another cluster than the controller that answered" + why +
			"; check the controller's URL, or ask for a token of its cluster"
	case NotAllowed:
		return which + " does not allow this" + why + "; ask for a token that does"
	case Unconfirmed:
		return which + " is of a snapshot from which the cluster's state was restored" + why + "; an admin confirms " +
			"that it still counts (heddle-controller confirm " + string(e.ID) + ")"
	}
	return which + " is refused" + why
}

// Unwrap is what says more.
func (e *TokenError) Unwrap() error { return e.Err }

// Is compares by the fault alone: errors.Is(err, &TokenError{Fault: Used}).
func (e *TokenError) Is(target error) bool {
	t, ok := target.(*TokenError)
	return ok && t.Fault == e.Fault && (t.ID == "" || t.ID == e.ID)
}

// PeerFault is why a certificate is refused.
type PeerFault uint8

// The faults of certificates. Their words are part of the API.
const (
	// Missing: the other side showed no certificate.
	Missing PeerFault = iota + 1
	// Malformed: it is none that an authority of Heddle's makes.
	Malformed
	// Foreign: no authority of this cluster has signed it.
	Foreign
	// OtherKind: a host's where a controller's is needed, or the other way round.
	OtherKind
	// Overdue: its time is over.
	Overdue
	// TooEarly: its time has not come.
	TooEarly
	// Revoked: somebody has withdrawn it.
	Revoked
	// OtherHost: a host's, and another one is talked to here.
	OtherHost
	// TooOften: it was renewed too often of late to be renewed again.
	TooOften
	// NotConfirmed: it is of a snapshot from which the state was restored, and nobody has confirmed it since.
	NotConfirmed
)

// PeerFaults are all that a controller finds.
func PeerFaults() []PeerFault {
	return []PeerFault{Missing, Malformed, Foreign, OtherKind, Overdue, TooEarly, Revoked, TooOften,
		NotConfirmed}
}

// String is the fault's word.
func (f PeerFault) String() string {
	switch f {
	case Missing:
		return "missing"
	case Malformed:
		return "malformed"
	case Foreign:
		return "foreign"
	case OtherKind:
		return "other-kind"
	case Overdue:
		return "expired"
	case TooEarly:
		return "too-early"
	case Revoked:
		return "revoked"
	case OtherHost:
		return "other-host"
	case TooOften:
		return "too-often"
	case NotConfirmed:
		return "not-confirmed"
	}
	return fmt.Sprintf("fault %d", uint8(f))
}

// PeerError is a certificate that is refused.
type PeerError struct {
	Fault PeerFault
	// Name is empty where none could be read.
	Name Name
	// Err says what is wrong.
	Err error
}

// Error says what is wrong.
func (e *PeerError) Error() string {
	if e.Name == (Name{}) {
		return e.Err.Error()
	}
	return fmt.Sprintf("certificate of %s: %v", e.Name, e.Err)
}

// Unwrap is what is wrong.
func (e *PeerError) Unwrap() error { return e.Err }

// Is compares by the fault alone: errors.Is(err, &PeerError{Fault: Revoked}).
func (e *PeerError) Is(target error) bool {
	t, ok := target.(*PeerError)
	return ok && t.Fault == e.Fault
}

func refused(f PeerFault, n Name, format string, args ...any) error {
	return &PeerError{f, n, fmt.Errorf(format, args...)}
}
