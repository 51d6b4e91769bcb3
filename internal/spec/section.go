package spec

import (
	"bytes"
	"crypto/sha256"
	"slices"

	"go.yaml.in/yaml/v4"
)

// section is the part of a file that lists its ports, from the line "ports:" to the end. On a host with a thousand
// ports this is nearly the whole file, and a change of a port group does not change it: then it is not parsed again.
type section struct {
	length int // bytes
	digest [sha256.Size]byte
	line   int // of its first line in the file in which it was read
	pos    map[uint64]position
	values int // as decoder.values
	ports  []Port
	// special are the ports that need more checks than whether their switch accepts them (isSpecial).
	special []int
	// whole: it means the same after any other beginning of a file.
	whole bool
}

// ParseAfter is Parse for a file that replaces one that was parsed before, nil for none. The result is the same,
// including the positions of faults, but unchanged ports are not parsed again. before does not change; the two share
// their ports.
func ParseAfter(before *Config, filename string, data []byte) (*Config, error) {
	if before == nil || before.src == nil || before.src.section == nil || TooLarge(data) || hasTooManyValues(data) {
		return Parse(filename, data)
	}
	s := before.src.section
	head, ok := s.cut(asYAML(data))
	if !ok || !s.whole {
		return Parse(filename, data)
	}
	cfg, ok := s.behind(filename, head)
	if !ok { // it must be parsed as a whole, at least to find the faults
		return Parse(filename, data)
	}
	if !cfg.takes(s) {
		return Parse(filename, data)
	}
	return cfg, nil
}

// takes reports whether the rest of the file is valid, accepts the ports of the section, which another one accepted,
// and fits together with them: the ports themselves, and among one another, were checked then.
func (c *Config) takes(s *section) bool {
	v := newValidator(c)
	v.reading = true
	checkHead(v, 0)
	if len(v.found.faults) > 0 || !acceptsAll(v) {
		return false
	}
	checkPorts(v, slices.Values(s.special))
	checkTogether(v)
	return len(v.found.faults) == 0
}

// acceptsAll reports whether the switches have what the ports name, and nothing that the ports have.
func acceptsAll(v *validator) bool {
	var last *Port
	var i int
	for k := range v.cfg.Ports {
		p := &v.cfg.Ports[k]
		if last == nil || p.Switch != last.Switch || p.PortGroup != last.PortGroup {
			var known bool
			if i, known = v.switches[p.Switch]; known {
				_, known = v.groups[i][p.PortGroup]
			}
			if !known {
				return false
			}
			last = p
		}
		if _, clash := v.uplinks[i][p.Name]; clash {
			return false
		}
		if _, clash := v.devices[p.ActualDevice()]; clash {
			return false
		}
	}
	return true
}

// isSpecial reports whether what is before the ports decides more about the port at a than whether it is accepted: a
// host interface, one with a policy of its own, and one that a tunnel may be in the way of.
func (v *validator) isSpecial(a at, p *Port) bool {
	return p.ActualRole() == Host || p.TxUplink || p.Name == TunnelName || !v.silent(a, &p.Policy)
}

// SamePorts reports whether two lists of ports are the same memory, as after ParseAfter has reused them: then no port
// differs.
func SamePorts(a, b []Port) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// behind is the configuration of a file that begins with head and ends with s. ok is false if it cannot be derived from
// the two parts alone. This relies on a property of YAML: a complete block mapping continues with the next key at its
// column, whatever that key contains; and the key's content is read alike in both places, as long as it has no aliases
// and no directives are active.
func (s *section) behind(filename string, head []byte) (cfg *Config, ok bool) {
	dec := yaml.NewDecoder(bytes.NewReader(head))
	var doc yaml.Node
	if dec.Decode(&doc) != nil || !isPlain(head, &doc) {
		return nil, false
	}
	d := newDecoder(filename)
	d.values = s.values
	cfg = &Config{src: d.src}
	d.document(&doc, cfg)
	d.rest(dec)
	if len(d.found.faults) > 0 || cfg.Ports != nil || d.src.section != nil {
		return nil, false
	}
	cfg.Ports = s.ports
	d.src.section, d.src.shift = s, bytes.Count(head, []byte("\n"))+1-s.line
	d.src.ports = len(cfg.Ports)
	return cfg, true
}

// isPlain reports whether a document with that text is one block mapping at the first column, without directives or
// document marks, except for one at the beginning.
func isPlain(text []byte, doc *yaml.Node) bool {
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		return false
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode || root.Style&yaml.FlowStyle != 0 || root.Column != 1 || root.Anchor != "" {
		return false
	}
	begun := false
	for line := range bytes.Lines(text) {
		begins := !begun && string(bytes.TrimSpace(line)) == "---" // a document may begin like this
		if mark := line[:min(3, len(line))]; line[0] == '%' || string(mark) == "..." || string(mark) == "---" &&
			!begins {
			return false
		}
		begun = begun || begins || len(bytes.TrimSpace(line)) > 0 && line[0] != '#'
	}
	return !bytes.ContainsAny(text, "\r\u0085\u2028\u2029\ufeff") // other line ends, and a byte order mark
}

// cut is the part of a file before the section that the file ends with.
func (s *section) cut(data []byte) (head []byte, ok bool) {
	n := len(data) - s.length
	if n < 1 || data[n-1] != '\n' || sha256.Sum256(data[n:]) != s.digest {
		return nil, false
	}
	return data[:n], true
}

// portsSection decodes the value n of the key "ports" at the root.
func (d *decoder) portsSection(n *yaml.Node, decode func()) {
	s := &section{pos: map[uint64]position{}, whole: !hasAlias(n)}
	before := d.values
	d.src.section, d.into = s, s.pos
	decode()
	d.into = d.src.pos
	s.values = d.values - before
}

// close makes the section remember its text if it is the file's last key and begins a line; otherwise the section is
// forgotten.
func (s *source) close(data []byte, doc *yaml.Node, ports []Port) {
	if s.section == nil {
		return
	}
	root := doc.Content[0]
	key := root.Content[len(root.Content)-2]
	if !isPlain(data, doc) || key.Value != "ports" || key.Column != 1 || key.Style != 0 || key.Anchor != "" {
		s.section.whole = false
		return
	}
	start := 0
	for range key.Line - 1 {
		start += bytes.IndexByte(data[start:], '\n') + 1
	}
	text := data[start:]
	s.section.length, s.section.digest, s.section.line, s.section.ports = len(text), sha256.Sum256(
		text), key.Line, ports
	v := validator{src: s, reading: true}
	for i := range ports {
		if v.isSpecial(at{}.field("ports").item(i, ports[i].Name), &ports[i]) {
			s.section.special = append(s.section.special, i)
		}
	}
	s.section.whole = s.section.whole && bytes.HasPrefix(text, []byte("ports:"))
}

func hasAlias(n *yaml.Node) bool {
	if n.Kind == yaml.AliasNode {
		return true
	}
	for _, c := range n.Content {
		if hasAlias(c) {
			return true
		}
	}
	return false
}
