package store

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// chunkPorts is how many ports share a key at most: a change of one port writes them all again.
const chunkPorts = 32

// Binding says whose a port is. A virtual machine is known by its UUID, never by its name.
type Binding struct {
	Host    string `json:"host"`
	VM      string `json:"vm"`
	Adapter string `json:"adapter"`
	MAC     string `json:"mac,omitempty"`
	VNI     uint32 `json:"vni,omitempty"`
	// Generation is the one with which the port came to the host behind its VM; 0 where the host claimed it.
	Generation uint64 `json:"generation,omitempty"`
	// Claim is the one by which a host got or confirmed it; zero where no host did, or one said nothing of it.
	Claim Claim `json:"claim,omitzero"`
}

// Claim is a claim or a release of a host, among all of that host.
type Claim struct {
	Run          string `json:"run"`          // of the host's agent, another one after each start
	Conversation uint64 `json:"conversation"` // of that run
	Number       uint64 `json:"number"`       // in that conversation
	// Begun is higher for every later run; 0 where that is not known.
	Begun uint64 `json:"begun,omitempty"`
}

// after reports whether c is known to have been made after o: by the same run of an agent, or by a later one.
func (c Claim) after(o Claim) bool {
	if c.Run != o.Run {
		return o.Begun != 0 && c.Begun > o.Begun
	}
	return c.Run != "" && cmp.Or(cmp.Compare(c.Conversation, o.Conversation), cmp.Compare(c.Number, o.Number)) > 0
}

// sameNIC tells whether two bindings are of one adapter of one virtual machine.
func (b *Binding) sameNIC(o *Binding) bool { return b.VM == o.VM && b.Adapter == o.Adapter }

// Port is a static port of a port group.
type Port struct {
	ID    string
	Group string // SWITCH/GROUP
	// Binding is nil while the port is nobody's.
	Binding *Binding
	// Doc has the port's other fields, as JSON: its name, its own policies, what a newer version knows.
	Doc json.RawMessage
}

// chunk is the document of up to 32 ports of one port group. Ports are decoded one by one, so that what isn't touched
// stays as it is.
type chunk struct {
	group  string
	number int64
	// next is the first place that no port ever had; ports that are removed leave their place empty.
	next  int64
	free  map[string]json.RawMessage
	bound map[string]json.RawMessage
	// rest are fields of a newer version.
	rest map[string]json.RawMessage
}

func chunkKey(group string, number int64) Key {
	return Key{KindPorts, group + "/" + strconv.FormatInt(number, 10)}
}

// parseChunkName divides SWITCH/GROUP/NUMBER.
func parseChunkName(name string) (group string, number int64, ok bool) {
	at := strings.LastIndexByte(name, '/')
	if at <= 0 {
		return "", 0, false
	}
	number, err := strconv.ParseInt(name[at+1:], 10, 64)
	return name[:at], number, err == nil && number >= 0
}

// chunkOf tells which chunk a port is in: its identifier is the place in it.
func chunkOf(id string) (number int64, ok bool) {
	n, err := strconv.ParseInt(id, 10, 64)
	return n / chunkPorts, err == nil && n >= 0 && strconv.FormatInt(n, 10) == id
}

func decodeChunk(name string, doc []byte) (*chunk, error) {
	group, number, ok := parseChunkName(name)
	if !ok {
		return nil, fmt.Errorf("store: %q is no name of a chunk of ports", name)
	}
	c := &chunk{group: group, number: number, free: map[string]json.RawMessage{}, bound: map[string]json.RawMessage{}}
	if err := json.Unmarshal(doc, &c.rest); err != nil {
		return nil, fmt.Errorf("store: ports %s: %w", name, err)
	}
	for field, to := range map[string]any{"next": &c.next, "free": &c.free, "bound": &c.bound} {
		if text, there := c.rest[field]; there {
			if err := json.Unmarshal(text, to); err != nil {
				return nil, fmt.Errorf("store: ports %s: %s: %w", name, field, err)
			}
		}
	}
	if c.free == nil || c.bound == nil || c.rest == nil {
		return nil, fmt.Errorf("store: ports %s: null is no ports", name)
	}
	return c, nil
}

func (c *chunk) encode() []byte {
	all := maps.Clone(c.rest)
	if all == nil {
		all = map[string]json.RawMessage{}
	}
	all["next"] = json.RawMessage(strconv.FormatInt(c.next, 10))
	all["free"], all["bound"] = mustJSON(c.free), mustJSON(c.bound)
	return mustJSON(all)
}

// mustJSON encodes what is made of parts that were read as JSON.
func mustJSON(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

// ports is how many ports there are.
func (c *chunk) ports() int { return len(c.free) + len(c.bound) }

// add makes new unbound ports, as many as have places.
func (c *chunk) add(n int) (added int) {
	for ; added < n && c.next < chunkPorts; added++ {
		c.free[strconv.FormatInt(c.number*chunkPorts+c.next, 10)] = json.RawMessage(`{}`)
		c.next++
	}
	return added
}

// first returns the unbound port with the lowest identifier.
func (c *chunk) first() string {
	return slices.MinFunc(slices.Collect(maps.Keys(c.free)), compareIDs)
}

func compareIDs(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }

// get decodes a port.
func (c *chunk) get(id string) (*Port, error) {
	text, there := c.bound[id]
	if !there {
		if text, there = c.free[id]; !there {
			return nil, nil
		}
		return &Port{ID: id, Group: c.group, Doc: text}, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, fmt.Errorf("store: port %s: %w", id, err)
	}
	p := &Port{ID: id, Group: c.group, Binding: &Binding{}}
	if err := json.Unmarshal(fields["binding"], p.Binding); err != nil {
		return nil, fmt.Errorf("store: port %s: its binding: %w", id, err)
	}
	delete(fields, "binding")
	p.Doc = mustJSON(fields)
	return p, nil
}

// set writes a port back, among the bound or the unbound ones.
func (c *chunk) set(p *Port) error {
	delete(c.free, p.ID)
	old, there := c.bound[p.ID]
	delete(c.bound, p.ID)
	if p.Binding == nil {
		c.free[p.ID] = p.Doc
		return nil
	}
	var fields, binding map[string]json.RawMessage
	if err := json.Unmarshal(p.Doc, &fields); err != nil {
		return fmt.Errorf("store: port %s: %w", p.ID, err)
	}
	if there { // fields of the binding that a newer version wrote stay while the port is bound
		var was struct{ Binding map[string]json.RawMessage }
		if err := json.Unmarshal(old, &was); err != nil {
			return fmt.Errorf("store: port %s: %w", p.ID, err)
		}
		binding = was.Binding
	}
	fields["binding"] = p.Binding.over(binding)
	c.bound[p.ID] = mustJSON(fields)
	return nil
}

// over writes the binding's fields over those that there are.
func (b *Binding) over(fields map[string]json.RawMessage) []byte {
	if fields == nil {
		return mustJSON(b)
	}
	for _, known := range []string{"host", "vm", "adapter", "mac", "vni", "generation", "claim"} {
		delete(fields, known)
	}
	var own map[string]json.RawMessage
	if err := json.Unmarshal(mustJSON(b), &own); err != nil {
		panic(err) // it was just encoded
	}
	maps.Copy(fields, own)
	return mustJSON(fields)
}

// DecodePorts reads the ports of an object of KindPorts, by identifier.
func DecodePorts(o *Object) ([]Port, error) {
	c, err := decodeChunk(o.Name, o.Doc)
	if err != nil {
		return nil, err
	}
	ports := make([]Port, 0, c.ports())
	for _, among := range []map[string]json.RawMessage{c.free, c.bound} {
		for id := range among {
			p, err := c.get(id)
			if err != nil {
				return nil, err
			}
			ports = append(ports, *p)
		}
	}
	slices.SortFunc(ports, func(a, b Port) int { return compareIDs(a.ID, b.ID) })
	return ports, nil
}

// Bindings are whose the ports of an object of KindPorts are.
type Bindings struct {
	Group string // SWITCH/GROUP; "" where there are no ports
	Ports int    // with unbound ones
	Bound map[string]*Binding
}

// DecodeBindings reads whose the ports of an object of KindPorts are, and nothing else of them: who follows the store
// reads all ports of an object each time that one of them is another.
func DecodeBindings(o *Object) (Bindings, error) {
	doc := newOutline[struct {
		Binding *Binding `json:"binding"`
	}]()
	group, _, err := doc.read(o.Name, o.Doc)
	if err != nil {
		return Bindings{}, err
	}
	out := Bindings{Ports: len(doc.Free) + len(doc.Bound), Bound: make(map[string]*Binding, len(doc.Bound))}
	if out.Ports > 0 {
		out.Group = group
	}
	for id, p := range doc.Bound {
		if p.Binding == nil {
			return Bindings{}, fmt.Errorf("store: port %s is bound to nobody", id)
		}
		out.Bound[id] = p.Binding
	}
	return out, nil
}

// outline is a chunk of which only that is decoded which is asked for of the bound ports.
type outline[Port any] struct {
	Next  int64              `json:"next"`
	Free  map[string]skipped `json:"free"`
	Bound map[string]Port    `json:"bound"`
}

func newOutline[Port any]() *outline[Port] {
	return &outline[Port]{Free: map[string]skipped{}, Bound: map[string]Port{}}
}

// read reads a chunk, as decodeChunk does.
func (c *outline[Port]) read(name string, doc []byte) (group string, number int64, err error) {
	group, number, ok := parseChunkName(name)
	if !ok {
		return "", 0, fmt.Errorf("store: %q is no name of a chunk of ports", name)
	}
	there := c
	if err := json.Unmarshal(doc, &there); err != nil {
		return "", 0, fmt.Errorf("store: ports %s: %w", name, err)
	}
	if there == nil || c.Free == nil || c.Bound == nil {
		return "", 0, fmt.Errorf("store: ports %s: null is no ports", name)
	}
	return group, number, nil
}

// skipped is a part of a document that nobody asks for.
type skipped struct{}

// UnmarshalJSON implements json.Unmarshaler.
func (*skipped) UnmarshalJSON([]byte) error { return nil }

// last returns the unbound port with the highest identifier.
func (c *chunk) last() string {
	return slices.MaxFunc(slices.Collect(maps.Keys(c.free)), compareIDs)
}
