package store

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
)

// Kind is what an object is. The type is open: an unknown kind of a newer controller is kept and passed on.
type Kind string

// The kinds that this version writes.
const (
	KindSwitch    Kind = "switch"
	KindPortGroup Kind = "portGroup" // SWITCH/GROUP
	KindHost      Kind = "host"
	KindHostPort  Kind = "hostPort" // HOST/NAME
	KindTemplate  Kind = "template"
	KindPorts     Kind = "ports" // SWITCH/GROUP/CHUNK: static bindings, written by Claim and Release
	KindToken     Kind = "token"
	KindAccount   Kind = "account"
	KindAudit     Kind = "audit"
	// KindPast is no object: a change of that kind adds a record to the history. See PastOf.
	KindPast Kind = "past"
)

// Key names an object. A name may contain slashes; a kind may not.
type Key struct {
	Kind Kind
	Name string
}

func (k Key) String() string { return string(k.Kind) + " " + k.Name }

// Object is a document with its metadata.
type Object struct {
	Key
	// ID is given when the object is created and stays while it exists; no other object ever has it.
	ID string
	// Version rises with every change of the object: it is the revision of the last one.
	Version int64
	// Doc is JSON, kept byte for byte. It is shared by all who read it: don't write to it.
	Doc []byte
	// value is what etcd holds: a line of metadata, with what a newer version added to it, and the document.
	value []byte
}

// What IfVersion can say besides a version.
const (
	New int64 = 0  // the object must not exist
	Any int64 = -1 // whatever the version is, also none
)

// MaxDoc is how large a document may be.
const MaxDoc = 1 << 20

// MaxChanges is how many changes one transaction has at most.
const MaxChanges = 128

// Change is one write.
type Change struct {
	Key
	// Doc is the new document. It is left empty when Delete is set.
	Doc    []byte
	Delete bool
	// Vital: it may use what is kept of the quota, as what removes may. A revocation is such a change.
	Vital bool
	// IfVersion is the version that the change was made on, New or Any.
	IfVersion int64
	// ID is taken for an object that is created; empty makes a new one. An import keeps the identifiers that way, and
	// who has to know whether a write happened that ended with an *Unavailable finds its own identifier.
	ID string
	// Record is what the history keeps of the change, for one of KindPast: the name is the revision that the change of
	// the definition was made on, in decimal, and Doc is empty. It is written without a look at what is there: the
	// transaction has to compare that revision itself.
	Record []byte
	// Unbound are port groups none of whose ports may be bound when the change is made: else the error is an *InUse.
	Unbound []string
	// LeavesPorts lets a port group be deleted that has ports: who deletes it removes them afterwards (RemovePorts).
	// Nobody claims them meanwhile, as a claim needs the group.
	LeavesPorts bool
	// Reserve are names that only one object may have, such as VNIIndex(5001); when one is another's, the error is a
	// *Reserved. Free gives names back; do so when the object is deleted.
	Reserve, Free []string
}

// head is the first line of a value: the metadata that Heddle keeps besides the document.
type head struct {
	ID string `json:"id"`
}

// NewID returns an identifier that no object had before: 130 random bits.
func NewID() string { return strings.ToLower(rand.Text()) }

// IsID reports whether a text is an identifier as NewID makes them.
func IsID(text string) bool {
	return len(text) == len(rand.Text()) && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// headOf returns the metadata line of a value.
func headOf(value []byte) []byte {
	line, _, _ := bytes.Cut(value, []byte{'\n'})
	return line
}

func encode(head, doc []byte) []byte {
	value := make([]byte, 0, len(head)+1+len(doc))
	return append(append(append(value, head...), '\n'), doc...)
}

func newHead(id string) []byte {
	text, err := json.Marshal(head{ID: id})
	if err != nil { // a string is always JSON
		panic(err)
	}
	return text
}

// decode reads a value. An object whose metadata can't be read is an error: it would lose its identifier.
func decode(k Key, value []byte, version int64) (*Object, error) {
	line, doc, found := bytes.Cut(value, []byte{'\n'})
	var h head
	if err := json.Unmarshal(line, &h); err != nil || !found || h.ID == "" {
		return nil, fmt.Errorf("store: %s has no metadata (version %d); it was not written by a controller", k, version)
	}
	return &Object{Key: k, ID: h.ID, Version: version, Doc: doc, value: value}, nil
}

// check says what is wrong with a change, whatever the store holds.
func (c *Change) check() error {
	switch {
	case c.Kind == "" || strings.ContainsAny(string(c.Kind), "/\n"):
		return fmt.Errorf("store: %q is no kind", c.Kind)
	case c.Name == "" || strings.ContainsAny(c.Name, "\n\x00"):
		return fmt.Errorf("store: a %s needs a name of one line", c.Kind)
	case c.IfVersion < Any:
		return fmt.Errorf("store: %s: %d is no version", c.Key, c.IfVersion)
	case c.Kind == KindPast:
		return c.checkRecord()
	case c.Delete && len(c.Doc) > 0:
		return fmt.Errorf("store: %s: a change either deletes or has a document", c.Key)
	case c.Delete:
		return nil
	case len(c.Doc) > MaxDoc:
		return fmt.Errorf("store: %s: the document has %d bytes, at most %d are allowed", c.Key, len(c.Doc), MaxDoc)
	case !json.Valid(c.Doc):
		return fmt.Errorf("store: %s: the document is no JSON", c.Key)
	}
	return nil
}
