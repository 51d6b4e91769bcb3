package history

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"heddle/internal/slice"
)

// Stretch is how many changes are made at most from one whole definition to the next.
const Stretch = 128

// Bounds of an entry's texts.
const (
	// MostMessage is how long a message is at most, in bytes.
	MostMessage = 1024
	mostLines   = 32
	longestLine = 200
)

// mostBody bounds what the body of a record unpacks to, in bytes.
const mostBody = 256 << 20

// Entry is what a record says of a change, beside the change itself.
type Entry struct {
	// Base is the revision that the change was made on, Revision the one that it made. Both are known by where the
	// record is.
	Base     int64 `json:"-"`
	Revision int64 `json:"-"`
	// Number counts the changes that have records, from 1.
	Number int64     `json:"number"`
	At     time.Time `json:"at"`
	// Who made the change, by its name; File is the file that was applied.
	Who  string `json:"who"`
	File string `json:"file,omitempty"`
	// Message is the operator's reason.
	Message string `json:"message,omitempty"`
	// Restores is the revision whose definition the change brought back; 0 for another change.
	Restores int64 `json:"restores,omitempty"`
	// How the hosts made the change, where not each as soon as it could.
	How string `json:"how,omitempty"`
	// Objects are what the change concerns, a line each, Left how many more there are.
	Objects []string `json:"objects,omitempty"`
	Left    int      `json:"left,omitempty"`
	// Since counts the changes since the last record with a whole definition; 0 for one that has it.
	Since int `json:"since"`
	// Gap: the definition had been changed without a record since the record before.
	Gap bool `json:"gap,omitempty"`
	// ID and Pieces are where the body is if it is too large for the record.
	ID     string `json:"id,omitempty"`
	Pieces int    `json:"pieces,omitempty"`
}

// Body is the rest of a record.
type Body struct {
	Put     []slice.Object `json:"put,omitempty"`
	Removed []slice.Key    `json:"removed,omitempty"`
	// Whole is the definition before the change, of an entry whose Since is 0.
	Whole []slice.Object `json:"whole,omitempty"`
}

// Next completes the entry of a change by the newest entry, nil for the first of all.
func (e Entry) Next(newest *Entry) Entry {
	e.Message = cutText(e.Message, MostMessage)
	if n := len(e.Objects); n > mostLines {
		e.Objects, e.Left = e.Objects[:mostLines:mostLines], n-mostLines
	}
	objects := make([]string, len(e.Objects))
	for i, line := range e.Objects {
		objects[i] = cutText(line, longestLine)
	}
	e.Objects = objects
	e.Number = 1
	if newest == nil {
		e.Gap = e.Base != 0
		return e
	}
	e.Number = newest.Number + 1
	e.Gap = newest.Revision != e.Base
	if !e.Gap && newest.Since+1 < Stretch {
		e.Since = newest.Since + 1
	}
	return e
}

// cutText is a text of at most that many bytes.
func cutText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}

// Pack compresses a body.
func Pack(b Body) ([]byte, error) { return (&Packer{}).Pack(b) }

// Packer packs one body after the other: a compressor takes 800 kB, which is more work than a small body.
type Packer struct{ w *flate.Writer }

// Pack compresses a body.
func (p *Packer) Pack(b Body) (packed []byte, err error) {
	var out bytes.Buffer
	if p.w == nil {
		if p.w, err = flate.NewWriter(&out, flate.DefaultCompression); err != nil {
			return nil, err
		}
	}
	p.w.Reset(&out)
	if err := errors.Join(json.NewEncoder(p.w).Encode(b), p.w.Close()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// Unpack reads what Pack made.
func Unpack(packed []byte) (b Body, err error) {
	r := io.LimitReader(flate.NewReader(bytes.NewReader(packed)), mostBody)
	if err := json.NewDecoder(r).Decode(&b); err != nil {
		return b, fmt.Errorf("a record of the definition's history is damaged: %w", err)
	}
	return b, nil
}

// Encode makes the value of a record: a line with the entry, and the packed body unless it is kept in pieces.
func Encode(e Entry, packed []byte) ([]byte, error) {
	line, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	return append(append(line, '\n'), packed...), nil
}

// Decode reads what Encode made.
func Decode(base, revision int64, value []byte) (e Entry, packed []byte, err error) {
	line, packed, found := bytes.Cut(value, []byte{'\n'})
	if err := json.Unmarshal(line, &e); err != nil || !found {
		return e, nil, fmt.Errorf("the record of revision %d in the definition's history is damaged", revision)
	}
	e.Base, e.Revision = base, revision
	return e, packed, nil
}
