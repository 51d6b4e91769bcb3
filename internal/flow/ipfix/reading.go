package ipfix

import (
	"encoding/binary"
	"slices"
	"time"
)

// reading is one message while the decoder reads it.
type reading struct {
	*Decoder
	domain  *domain
	at      time.Time
	message []byte
	visit   func(*Record) error
	record  Record // the one that is being visited
	result  Result
}

// sets reads every set; their lengths are right.
func (m *reading) sets() error {
	for at := headerLength; at < len(m.message); {
		id, end := binary.BigEndian.Uint16(m.message[at:]), at+int(binary.BigEndian.Uint16(m.message[at+2:]))
		var err error
		switch {
		case id == templateSet || id == optionsTemplateSet:
			err = m.templates(id, at+setHeaderLength, end)
		case id >= firstDataSet:
			err = m.data(id, at+setHeaderLength, end)
		default:
			m.result.Reserved++
		}
		if err != nil {
			return err
		}
		at = end
	}
	return nil
}

// templates reads the template records between two offsets. Fewer bytes than the shortest template has are padding.
func (m *reading) templates(set uint16, at, end int) error {
	for end-at >= leastTemplateRecord {
		id, count := binary.BigEndian.Uint16(m.message[at:]), int(binary.BigEndian.Uint16(m.message[at+2:]))
		if id < firstDataSet && (count > 0 || id != set) {
			return faultAt(at, "template id %d, want %d or more", id, firstDataSet)
		}
		if count == 0 {
			m.withdraw(set, id)
			at += leastTemplateRecord
			continue
		}
		t, next, err := m.template(set, id, at, end)
		if err != nil {
			return err
		}
		m.result.Templates++
		m.announce(m.domain)
		m.keep(t)
		at = next
	}
	return nil
}

// template reads one template record. The template has no more fields than the limit, or one more if it is too large.
func (m *reading) template(set, id uint16, start, end int) (t *Template, next int, err error) {
	count, scope, at := int(binary.BigEndian.Uint16(m.message[start+2:])), 0, start+leastTemplateRecord
	if set == optionsTemplateSet {
		if end-at < 2 {
			return nil, 0, faultAt(at, "options template %d: the number of scope fields takes 2 bytes, and %d are "+
				"left in the set", id, end-at)
		}
		scope = int(binary.BigEndian.Uint16(m.message[at:]))
		if scope < 1 || scope > count {
			return nil, 0, faultAt(at, "options template %d: %d of %d fields are its scope, want at least one and "+
				"not more than there are", id, scope, count)
		}
		at += 2
	}
	if least := 4 * count; end-at < least {
		return nil, 0, faultAt(start+2, "template %d: %d fields take at least %d bytes, and %d are left in the set", id,
			count, least, end-at)
	}
	fields := make([]Field, 0, min(count, m.limits.TemplateFields+1))
	length := 0
	for i := range count {
		f, n := readField(m.message[at:end])
		if n == 0 {
			return nil, 0, faultAt(at, "template %d: field %d of %d does not fit into the set, of which %d bytes are "+
				"left", id, i, count, end-at)
		}
		if f.Length != Variable {
			length += int(f.Length)
		} else {
			length++
		}
		if len(fields) < cap(fields) {
			fields = append(fields, f)
		}
		at += n
	}
	if length == 0 || length > maxRecord {
		return nil, 0, faultAt(start, "template %d: its records have %d bytes, want 1–%d", id, length, maxRecord)
	}
	return compile(id, scope, fields), at, nil
}

// readField reads a field specifier (RFC 7011 §3.2); it returns 0 bytes if the specifier is incomplete.
func readField(b []byte) (Field, int) {
	if len(b) < 4 {
		return Field{}, 0
	}
	f := Field{ID: binary.BigEndian.Uint16(b), Length: binary.BigEndian.Uint16(b[2:])}
	if f.ID&enterpriseBit == 0 {
		return f, 4
	}
	if len(b) < 8 {
		return Field{}, 0
	}
	f.ID &^= enterpriseBit
	f.PEN = binary.BigEndian.Uint32(b[4:])
	return f, 8
}

// keep stores a template within the limits.
func (m *reading) keep(t *Template) {
	old := m.domain.templates[t.id]
	if old != nil && old.same(t) {
		old.at = m.at
		return
	}
	if old != nil {
		m.result.Redefined++
		m.forget(t.id) // also if the new one is refused: the records that follow are no longer those of the old one
	}
	if len(t.fields) > m.limits.TemplateFields || len(m.domain.templates) >= m.limits.Templates || !m.fit(t.cost()) {
		m.result.Refused++
		m.domain.refused = true
		return
	}
	m.domain.templates[t.id] = &storedTemplate{t, m.at}
	m.charge(m.domain, t.cost())
}

// fit reports whether a template of that cost may be stored; it may drop templates of other domains for that.
func (m *reading) fit(cost int) bool {
	for m.cost+cost > m.limits.Fields {
		victim := m.victim(func(u *usage) bool {
			if u == m.domain.used {
				return u.cost+cost > m.limits.Fields/greedy
			}
			return u.cost > m.limits.Fields/greedy
		})
		if victim.Value.(*domain) == m.domain {
			return false
		}
		m.drop(victim)
	}
	return true
}

func (m *reading) forget(id uint16) {
	if t, ok := m.domain.templates[id]; ok {
		delete(m.domain.templates, id)
		m.charge(m.domain, -t.cost())
	}
}

// withdraw removes a template or, given the id of the template set, all templates of its kind (RFC 7011 §8.1). Over UDP
// withdrawals are ignored (§8.4).
func (m *reading) withdraw(set, id uint16) {
	if m.domain.key.session.Protocol == UDP {
		return
	}
	for have, t := range m.domain.templates {
		if t.set() == set && (id == set || id == have) {
			m.forget(have)
			m.result.Withdrawn++
		}
	}
}

// data reads the data records between two offsets. Fewer bytes than the shortest record has are padding (RFC 7011
// §3.3.1).
func (m *reading) data(set uint16, at, end int) error {
	t, ok := m.domain.templates[set]
	if ok && m.domain.key.session.Protocol == UDP && m.at.Sub(t.at) > m.limits.Lifetime {
		m.forget(set)
		ok = false
	}
	if !ok {
		if t = m.borrow(set, at, end); t == nil {
			m.result.Unknown++
			return nil
		}
		m.result.Borrowed++
	}
	rec := &m.record
	rec.Header, rec.Template = m.result.Header, t.Template
	for end-at >= t.length {
		n := t.length
		if t.variable {
			var err error
			if n, m.places, err = t.measure(m.message[at:end], m.places[:0]); err != nil {
				return faultAt(at+n, "record of template %d: %v", set, err)
			}
		}
		rec.Bytes, rec.places = m.message[at:at+n:at+n], m.places
		m.result.Records++
		if err := m.visit(rec); err != nil {
			return err
		}
		at += n
	}
	return nil
}

// Record is a data record of a message that is being read.
type Record struct {
	Header   Header
	Template *Template
	Bytes    []byte // of the message
	places   []Place
}

// Value is the i-th field from 0.
func (r *Record) Value(i int) Value {
	f := r.Template.fields[i]
	if r.Template.variable {
		p := r.places[i]
		return Value{f, r.Bytes[p.offset:][:p.length:p.length]}
	}
	return Value{f, r.Bytes[r.Template.offsets[i]:][:f.Length:f.Length]}
}

// Find is the first field with the element; false when the template has none.
func (r *Record) Find(pen uint32, id uint16) (Value, bool) {
	if i := r.Template.Index(pen, id); i >= 0 {
		return r.Value(i), true
	}
	return Value{}, false
}

// Named is the first field with the registered element of that name.
func (r *Record) Named(name string) (Value, bool) {
	e, ok := Named(name)
	if !ok {
		return Value{}, false
	}
	return r.Find(e.PEN, e.ID)
}

// Clone is a copy of the record that stays valid.
func (r *Record) Clone() *Record {
	c := *r
	c.Bytes, c.places = slices.Clone(r.Bytes), slices.Clone(r.places)
	return &c
}
