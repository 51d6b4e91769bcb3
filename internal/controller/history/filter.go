package history

import (
	"slices"
	"strings"
	"time"
)

// Filter says which changes are wanted.
type Filter struct {
	// Who made them; "" for anybody.
	Who string
	// Text is in the message, the file, or the lines of what was changed, in capitals or small letters; "" for any.
	Text string
	// Since is when they were made at the earliest; zero for any time.
	Since time.Time
}

// All reports whether every change is wanted.
func (f Filter) All() bool { return f == Filter{} }

// Before reports whether a change was made before what is wanted, and with it all older ones.
func (f Filter) Before(e Entry) bool { return !f.Since.IsZero() && e.At.Before(f.Since) }

// Passes reports whether a change is wanted of which somebody sees these lines.
func (f Filter) Passes(e Entry, objects []string) bool {
	if f.Before(e) || f.Who != "" && e.Who != f.Who {
		return false
	}
	if f.Text == "" {
		return true
	}
	text := strings.ToLower(f.Text)
	return slices.ContainsFunc(append([]string{e.Message, e.File}, objects...), func(line string) bool {
		return strings.Contains(strings.ToLower(line), text)
	})
}
