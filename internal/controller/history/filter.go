package history

import (
	"bytes"
	"encoding/json"
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

// Skips reports whether the change of a record can't pass, by its bytes alone: reading them takes a fraction of what
// decoding takes. It says nothing where the time of the change counts.
func (f Filter) Skips(record []byte) bool {
	line, _, _ := bytes.Cut(record, []byte{'\n'})
	switch {
	case !f.Since.IsZero():
		return false
	case f.Who != "":
		who, err := json.Marshal(f.Who)
		if err == nil && !bytes.Contains(line, append([]byte(`"who":`), who...)) {
			return true
		}
	}
	// A text with other characters may be written in another way in the record.
	return plain(f.Text) && !bytes.Contains(bytes.ToLower(line), []byte(strings.ToLower(f.Text)))
}

// plain reports whether JSON has a text just so.
func plain(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		small, capital, digit := 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9'
		return !small && !capital && !digit && !strings.ContainsRune(" ./:=-_", r)
	})
}

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
