package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"heddle/internal/lab/netns"
	"heddle/internal/spec/known"
)

// State is the state of a lab.
type State string

// The states of a lab.
const (
	Building State = "building" // being made, or left half-made by a process that was killed
	Up       State = "up"
)

// Record is what a lab consists of, stored in <run-dir>/lab/NAME.json.
type Record struct {
	Name     string    `json:"name"`
	Scenario string    `json:"scenario"`
	State    State     `json:"state"`
	Since    time.Time `json:"since"`
	// Dir contains the lab's configurations, logs, agents' state and pinned kernel objects.
	Dir   string `json:"dir"`
	Nodes []Node `json:"nodes"`
}

// Node is one namespace of a lab.
type Node struct {
	Name string   `json:"name"`
	Kind NodeKind `json:"kind"`
	// Namespace is empty for a guest under QEMU, which is a process in its host's namespace.
	Namespace string `json:"namespace,omitempty"`
	// Agent says whether an agent runs there; it has the name of the node.
	Agent bool `json:"agent,omitempty"`
	// Addresses are the node's own, CIDR.
	Addresses []string `json:"addresses"`
}

// NodeKind says what a node of a lab is.
type NodeKind string

// The kinds of node. A switch of kind heddle is a NodeHost too.
const (
	NodeHost   NodeKind = "host"
	NodeVM     NodeKind = "vm"
	NodeSwitch NodeKind = "switch"
	NodeRouter NodeKind = "router"
	// NodeController runs heddle-controller.
	NodeController NodeKind = "controller"
)

// ErrUnknown is wrapped when there is no lab of that name.
var ErrUnknown = errors.New("no such lab")

func recordDir(runDir string) string             { return filepath.Join(runDir, "lab") }
func recordFile(runDir, name string) string      { return filepath.Join(recordDir(runDir), name+".json") }
func (r *Record) namespaceOf(node string) string { return r.Name + "-" + node }

// create writes the record of a lab that is about to be built; it fails when the name is taken.
func (r *Record) create(runDir string) error {
	if err := os.MkdirAll(r.Dir, 0o755); err != nil {
		return fmt.Errorf("make the lab's directory: %w", err)
	}
	f, err := os.OpenFile(recordFile(runDir, r.Name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return r.taken()
	}
	if err != nil {
		return fmt.Errorf("write the lab's record: %w", err)
	}
	err = json.NewEncoder(f).Encode(r)
	return errors.Join(err, f.Close())
}

func (r *Record) taken() error {
	return fmt.Errorf("a lab %q exists already; remove it with: heddle lab down %s", r.Name, r.Name)
}

// save replaces the record in one step, so that a reader never sees half of it.
func (r *Record) save(runDir string) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	file := recordFile(runDir, r.Name)
	if err := os.WriteFile(file+".new", data, 0o644); err != nil {
		return fmt.Errorf("write the lab's record: %w", err)
	}
	return os.Rename(file+".new", file)
}

// Find reads the record of one lab; ErrUnknown when there is none.
func Find(runDir, name string) (*Record, error) {
	data, err := os.ReadFile(recordFile(runDir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, unknown(known.Names{What: "lab", All: labNames(runDir)}.Missing(name))
	}
	if err != nil {
		return nil, fmt.Errorf("read the lab's record: %w", err)
	}
	var r Record
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("read the lab's record %s: %w", recordFile(runDir, name), err)
	}
	return &r, nil
}

// unknown is the error for a lab that does not exist, in a whole sentence; it wraps ErrUnknown.
type unknown string

func (e unknown) Error() string { return string(e) }
func (e unknown) Unwrap() error { return ErrUnknown }

// labNames are the labs that have a record.
func labNames(runDir string) (names []string) {
	entries, err := os.ReadDir(recordDir(runDir))
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".json"); ok {
			names = append(names, name)
		}
	}
	return names
}

// List reads the records of all labs, sorted by name. Without labs it is an empty list.
func List(runDir string) ([]*Record, error) {
	entries, err := os.ReadDir(recordDir(runDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the labs: %w", err)
	}
	var all []*Record
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok {
			continue
		}
		r, err := Find(runDir, name)
		if errors.Is(err, ErrUnknown) {
			continue // taken down between the listing and the reading
		}
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b *Record) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// Namespace finds the namespace of a node of a lab; a guest under QEMU has none.
func Namespace(runDir, name, node string) (*netns.NS, error) {
	r, err := Find(runDir, name)
	if err != nil {
		return nil, err
	}
	there := known.Names{What: "node", Owner: "lab " + name}
	for _, n := range r.Nodes {
		if n.Name == node && n.Namespace != "" {
			return netns.Open(n.Namespace)
		}
		if n.Name == node {
			return nil, fmt.Errorf("node %q of lab %q is a machine under QEMU and not a namespace: reach it over the "+
				"network, from another node", node, name)
		}
		if n.Namespace != "" {
			there.All = append(there.All, n.Name)
		}
	}
	return nil, errors.New(there.Missing(node))
}
