package rpcerrors

import (
	"errors"

	"connectrpc.com/connect/v2"

	"heddle/internal/platform/store"
)

// IsConflict reports whether something was written meanwhile that a write rests on.
func IsConflict(err error) bool {
	var conflict *store.Conflict
	return errors.As(err, &conflict)
}

// OfStore is an error of the store, for the caller.
func OfStore(err error) error {
	var conflict *store.Conflict
	var away *store.Unavailable
	switch {
	case err == nil:
		return nil
	case errors.As(err, &conflict):
		return connect.NewError(connect.CodeAborted, err.Error())
	case errors.As(err, &away):
		return connect.NewError(connect.CodeUnavailable, err.Error())
	case errors.Is(err, store.ErrNoSpace):
		return connect.NewError(connect.CodeResourceExhausted, err.Error())
	}
	return err
}

// IsNotFound reports whether the store lacks what was named.
func IsNotFound(err error) bool {
	var missing *store.NotFound
	return errors.As(err, &missing)
}

// Removed is the error for a host that is not of the cluster any more.
func Removed() error {
	return connect.NewError(connect.CodePermissionDenied,
		"this host was taken out of the cluster: join again (heddle host join)")
}

// CodeAndText are what an error says, without the words of the protocol; 0 for none.
func CodeAndText(err error) (connect.Code, string) {
	if err == nil {
		return 0, ""
	}
	text := err.Error()
	var told *connect.Error
	if errors.As(err, &told) {
		text = told.Message()
	}
	return connect.CodeOf(err), text
}
