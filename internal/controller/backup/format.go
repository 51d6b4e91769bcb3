package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"heddle/internal/slice"
	"heddle/internal/spec"
	"heddle/internal/spec/printable"
)

// Format is the version of the file that this program writes, and the newest that it reads.
const Format = 1

// MostBytes bounds a file: the largest definition, and static ports and identifiers. A controller takes no larger call.
const MostBytes = 23 << 20

// File is a backup: a definition, and what belongs to it and is not in a definition. Tokens, roles, certificates, keys
// and the audit log are not in it.
type File struct {
	// Made is when, in UTC, by a program of that version.
	Made    time.Time `yaml:"made"`
	Version string    `yaml:"version,omitempty"`
	// Cluster, Epoch and Revision say of what definition it is.
	Cluster  string `yaml:"cluster"`
	Epoch    int64  `yaml:"epoch"`
	Revision int64  `yaml:"revision"`
	// Switch is the one that the backup is of; "" for everything.
	Switch string `yaml:"switch,omitempty"`
	// Identifiers are those of the objects: by kind, then by name.
	Identifiers map[slice.Kind]map[string]string `yaml:"identifiers,omitempty"`
	// Hosts are those that had joined. They join again: their certificates are in no backup.
	Hosts []Host `yaml:"hosts,omitempty"`
	// Addresses are those that hosts had from pools, by the hosts' names.
	Addresses map[string][]Address `yaml:"addresses,omitempty"`
	// StaticPorts are those of port groups that have some, by SWITCH/GROUP.
	StaticPorts []PortGroup `yaml:"staticPorts,omitempty"`

	// Definition is the second document of the file, in the form that "heddle definition apply" takes. Notes are
	// comments before it.
	Definition *spec.Definition `yaml:"-"`
	Notes      string           `yaml:"-"`
}

// Host is one that had joined.
type Host struct {
	Name   string            `yaml:"name"`
	ID     string            `yaml:"id"`
	Labels map[string]string `yaml:"labels,omitempty"`
}

// Address is one that a host port had from a pool.
type Address struct {
	Port    string `yaml:"port"`
	Switch  string `yaml:"switch"`
	Address string `yaml:"address"`
}

// PortGroup has the static ports of one port group.
type PortGroup struct {
	Group string `yaml:"portGroup"`
	// Free are the numbers of those that are nobody's, Bound the others.
	Free  []string `yaml:"free,omitempty,flow"`
	Bound []Port   `yaml:"bound,omitempty"`
}

// Port is a static port that is an adapter's.
type Port struct {
	ID      string `yaml:"id"`
	VM      string `yaml:"vm"`
	Adapter string `yaml:"adapter"`
	MAC     string `yaml:"mac,omitempty"`
	VNI     uint32 `yaml:"vni,omitempty"`
	// Host is the name of the host that it is bound on, HostID its identifier in the cluster of the backup.
	Host   string `yaml:"host,omitempty"`
	HostID string `yaml:"hostID,omitempty"`
}

// Ports is how many static ports there are, and how many of them are bound.
func (f *File) Ports() (all, bound int) {
	for _, g := range f.StaticPorts {
		all, bound = all+len(g.Free)+len(g.Bound), bound+len(g.Bound)
	}
	return all, bound
}

const (
	intro = `# A backup of what the controllers of a Heddle cluster define. "heddle backup import" brings it back,
# "heddle backup diff" compares it with what there is. The second document is the definition, as
# "heddle definition apply" takes it. No token, role, certificate, key or audit record is in this file.
`
	versionField  = "heddleBackup: "
	checksumField = "checksum: sha256:"
	divide        = "---\n"
	// headBytes is more than the two lines before the body have.
	headBytes = 256
)

// Encode writes a file.
func Encode(f *File) ([]byte, error) {
	head, err := yaml.Dump(f)
	if err != nil {
		return nil, err
	}
	definition, err := spec.FormatDefinition(f.Definition)
	if err != nil {
		return nil, err
	}
	body := bytes.Join([][]byte{head, []byte(f.Notes), definition}, nil)
	body = append(append(append([]byte(nil), head...), divide...), body[len(head):]...)
	sum := sha256.Sum256(body)
	if len(body) > MostBytes-len(intro)-headBytes {
		return nil, fmt.Errorf("the backup would have more than %d MiB: make one of each switch", MostBytes>>20)
	}
	out := fmt.Appendf(nil, "%s%s%d\n%s%s  # of all that follows this line\n", intro, versionField, Format,
		checksumField,
		hex.EncodeToString(sum[:]))
	return append(out, body...), nil
}

// Errors of files that are none, or not whole.
var (
	errNone = errors.New("this is no backup: its first line that is no comment would be \"heddleBackup: 1\" " +
		"(heddle backup export writes one)")
	errDamaged = errors.New("the backup is not whole, or was changed: its checksum does not fit. To bring in a file " +
		"that you edited, take its second document for \"heddle definition apply -f\"")
	errSnapshot = errors.New("this is a snapshot of the controllers' database and no backup: heddle-controller " +
		"restore brings it back where no controller runs, and heddle backup export then makes a backup")
)

// Decode reads and checks a file. The whole of it is right, or there is an error that says what is wrong.
func Decode(name string, data []byte) (*File, error) {
	if len(data) > MostBytes {
		return nil, fmt.Errorf("%s: larger than %d MiB, as no backup is", name, MostBytes>>20)
	}
	f, err := decode(name, data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

func decode(name string, data []byte) (*File, error) {
	if isSnapshot(data) {
		return nil, errSnapshot
	}
	rest := data
	for bytes.HasPrefix(rest, []byte("#")) {
		_, rest, _ = bytes.Cut(rest, []byte("\n"))
	}
	version, rest, ok := field(rest, versionField)
	if !ok {
		return nil, errNone
	}
	switch n, err := strconv.Atoi(version); {
	case err != nil || n < 1:
		return nil, errNone
	case n > Format:
		return nil, fmt.Errorf("the backup has format %d, of a newer version of Heddle; this one reads up to %d: "+
			"import it with a program of that version", n, Format)
	}
	sum, body, ok := field(rest, checksumField)
	sum, _, _ = strings.Cut(sum, " ")
	is := sha256.Sum256(body)
	if !ok || sum != hex.EncodeToString(is[:]) {
		return nil, errDamaged
	}
	head, definition, ok := bytes.Cut(body, []byte("\n"+divide))
	if !ok {
		return nil, errDamaged
	}
	f := &File{}
	dec := yaml.NewDecoder(bytes.NewReader(head))
	dec.KnownFields(true)
	if err := dec.Decode(f); err != nil {
		return nil, fmt.Errorf("the first document: %s", printable.Short(err.Error(), 500))
	}
	var err error
	if f.Definition, err = spec.ParseDefinition("the second document of "+name, definition); err != nil {
		return nil, err
	}
	return f, f.check()
}

// field reads the line that begins with a name, and returns what is after it.
func field(text []byte, name string) (value string, rest []byte, ok bool) {
	line, rest, ok := bytes.Cut(text, []byte("\n"))
	if !ok || !bytes.HasPrefix(line, []byte(name)) {
		return "", text, false
	}
	return string(bytes.TrimSpace(line[len(name):])), rest, true
}

// isSnapshot tells whether data is a database of bbolt, as a snapshot of etcd is: its magic number is in the first
// page.
func isSnapshot(data []byte) bool {
	const at = 16 // after the header of the page
	return len(data) > at+4 && bytes.Equal(data[at:at+4], []byte{0xed, 0xda, 0x0c, 0xed})
}
