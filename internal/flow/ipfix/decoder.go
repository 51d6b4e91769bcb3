package ipfix

import (
	"container/list"
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"
)

// Error says what is wrong with a message, and where.
type Error struct {
	Offset  int    // of the byte in the message, from 0
	Problem string // what was expected and what is there
}

func (e *Error) Error() string { return fmt.Sprintf("byte %d: %s", e.Offset, e.Problem) }

// faultAt makes an *Error.
func faultAt(offset int, format string, args ...any) error {
	return &Error{Offset: offset, Problem: fmt.Sprintf(format, args...)}
}

// Transport protocols of a Session, by their IP protocol numbers.
const (
	TCP  = 6
	UDP  = 17
	SCTP = 132
)

// Session is a transport session; within it, template ids and sequence numbers belong to an observation domain (RFC
// 7011 §3.4.1, §8). Over UDP, a template that did not come in the session is looked for in the exporter's other
// sessions; see Result.Borrowed. Over TCP, call Decoder.Forget when a connection has ended.
type Session struct {
	Protocol            uint8 // TCP, UDP or SCTP
	Exporter, Collector netip.AddrPort
}

// Limits bound the memory of a Decoder, whatever it receives. Zero fields stand for their defaults. When Domains or
// Fields are used up, one domain is dropped: of the sessions that have more than an eighth of them, or else of all, the
// domain that was silent longest. So a faulty exporter does not displace others.
type Limits struct {
	Domains        int // observation domains of all sessions. Default 1024.
	Templates      int // of one domain; more are refused. Default 1024.
	TemplateFields int // of one template; larger ones are refused. Default 512.
	// for all templates together: each counts as 16 plus one per field. Default 262144, at most 6 MB.
	Fields int
	// Lifetime is how long a template that came over UDP is used if it is not sent again (RFC 7011 §8.4). Default
	// 30 minutes.
	Lifetime time.Duration
}

func (l Limits) orDefaults() Limits {
	set := func(n *int, to int) {
		if *n <= 0 {
			*n = to
		}
	}
	set(&l.Domains, 1024)
	set(&l.Templates, 1024)
	set(&l.TemplateFields, 512)
	set(&l.Fields, 1<<18)
	if l.Lifetime <= 0 {
		l.Lifetime = 30 * time.Minute
	}
	return l
}

// Decoder reads messages of any number of exporters and stores their templates. It is for one goroutine.
type Decoder struct {
	limits  Limits
	domains map[domainKey]*list.Element // of *domain
	recent  *list.List                  // the domain heard last is at the front
	used    map[Session]*usage          // of every session that has a domain
	origins map[origin][]*domain        // over UDP: the domains that sent templates, the latest at the front
	cost    int                         // of all templates
	places  []Place                     // of the record that is being visited
}

// usage is how much of the limits a session uses.
type usage struct{ domains, cost int }

// greedy defines when a session counts as greedy: when it uses more than 1/greedy of a limit.
const greedy = 8

type domainKey struct {
	session Session
	id      uint32
}

// domain is the stored state of an observation domain.
type domain struct {
	key       domainKey
	templates map[uint16]*storedTemplate
	sequence  Sequence
	used      *usage // of its session
	refused   bool   // a template of the session was refused
}

// storedTemplate is a stored template and when it came last.
type storedTemplate struct {
	*Template
	at time.Time
}

// cost is what a template counts against Limits.Fields.
func (t *Template) cost() int { return 16 + len(t.fields) }

// NewDecoder makes a decoder that has heard nobody.
func NewDecoder(l Limits) *Decoder {
	return &Decoder{limits: l.orDefaults(), domains: map[domainKey]*list.Element{}, recent: list.New(),
		used:    map[Session]*usage{},
		origins: map[origin][]*domain{}, places: make([]Place, 0, 64)}
}

// Header is the header of a message (RFC 7011 §3.1).
type Header struct {
	Length   int
	Exported time.Time // whole seconds
	Sequence uint32    // how many data records the domain's session had sent before, modulo 2³²
	Domain   uint32    // observation domain id
}

// ParseHeader reads the header of a message; over TCP its Length says how much to read.
func ParseHeader(b []byte) (Header, error) {
	if len(b) < headerLength {
		return Header{}, faultAt(len(b), "a message begins with a header of %d bytes, and there are %d", headerLength,
			len(b))
	}
	if v := binary.BigEndian.Uint16(b); v != version {
		return Header{}, faultAt(0, "version %d, want %d (IPFIX)", v, version)
	}
	h := Header{
		Length: int(binary.BigEndian.Uint16(b[2:])), Exported: time.Unix(int64(binary.BigEndian.Uint32(b[4:])),
			0).UTC(),
		Sequence: binary.BigEndian.Uint32(b[8:]), Domain: binary.BigEndian.Uint32(b[12:]),
	}
	if h.Length < headerLength {
		return Header{}, faultAt(2, "the message says it has %d bytes, want at least %d", h.Length, headerLength)
	}
	return h, nil
}

// Result is what a message contained.
type Result struct {
	Header Header
	// Records is the number of data records passed to visit, including options records.
	Records int
	// Templates is how many templates came, new or repeated; Redefined is how many of them replaced a different one
	// with the same id, Refused how many were not stored because of the Limits. Withdrawn is the number of
	// withdrawn templates.
	Templates, Redefined, Refused, Withdrawn int
	// Unknown is the number of data sets without a template: it has not come, or is too old, or was refused. They
	// are dropped, not stored until the template comes: an exporter sends templates first, and over UDP again and
	// again. Reserved is the number of sets whose id has no meaning (RFC 7011 §3.3.2).
	Unknown, Reserved int
	// Borrowed is the number of data sets that were read with a template from another session of the same exporter
	// address and domain. This happens over UDP, for ids that have no template in the session.
	Borrowed int
	// Lost is how many more records of the domain are lost than before the message; negative if some were only
	// late.
	Lost int64
}

// Decode reads a whole message that came at the given time. It stores its templates, and passes its data records to
// visit one after the other. A record and its values, like the message's bytes, are valid until visit returns. An error
// of visit ends the reading and is returned. For a faulty message Decode returns an *Error; what precedes the fault has
// been processed, except if the header or the lengths of the sets are wrong, when nothing has.
func (d *Decoder) Decode(from Session, at time.Time, message []byte, visit func(*Record) error) (Result, error) {
	h, err := ParseHeader(message)
	if err != nil {
		return Result{}, err
	}
	if err := checkSets(h, message); err != nil {
		return Result{Header: h}, err
	}
	m := &reading{Decoder: d, domain: d.domainOf(domainKey{from, h.Domain}), at: at, message: message, visit: visit}
	m.result.Header = h
	err = m.sets()
	complete := err == nil && m.result.Unknown == 0
	m.result.Lost = m.domain.sequence.Message(h.Sequence, m.result.Records, complete)
	return m.result, err
}

// checkSets reports whether the lengths of message and sets match the bytes.
func checkSets(h Header, message []byte) error {
	if h.Length != len(message) {
		return faultAt(2, "the message says it has %d bytes, and there are %d", h.Length, len(message))
	}
	for at := headerLength; at < len(message); {
		left := len(message) - at
		if left < setHeaderLength {
			return faultAt(at, "a set begins with a header of %d bytes, and %d are left", setHeaderLength, left)
		}
		n := int(binary.BigEndian.Uint16(message[at+2:]))
		if n < setHeaderLength || n > left {
			return faultAt(at+2, "the set says it has %d bytes, want %d–%d", n, setHeaderLength, left)
		}
		at += n
	}
	return nil
}

// domainOf is the domain, which becomes the one heard last.
func (d *Decoder) domainOf(key domainKey) *domain {
	if e, ok := d.domains[key]; ok {
		d.recent.MoveToFront(e)
		return e.Value.(*domain)
	}
	if len(d.domains) >= d.limits.Domains {
		d.drop(d.victim(func(u *usage) bool { return u.domains > d.limits.Domains/greedy }))
	}
	u := d.used[key.session]
	if u == nil {
		u = &usage{}
		d.used[key.session] = u
	}
	u.domains++
	it := &domain{key: key, templates: map[uint16]*storedTemplate{}, used: u}
	d.domains[key] = d.recent.PushFront(it)
	return it
}

// victim is the domain to drop: of a greedy session if there is one.
func (d *Decoder) victim(isGreedy func(*usage) bool) *list.Element {
	for e := d.recent.Back(); e != nil; e = e.Prev() {
		if isGreedy(e.Value.(*domain).used) {
			return e
		}
	}
	return d.recent.Back()
}

// drop forgets a domain.
func (d *Decoder) drop(e *list.Element) {
	it := d.recent.Remove(e).(*domain)
	delete(d.domains, it.key)
	d.silence(it)
	for _, t := range it.templates {
		d.charge(it, -t.cost())
	}
	if it.used.domains--; it.used.domains == 0 {
		delete(d.used, it.key.session)
	}
}

// charge adds the cost of a template to the usage.
func (d *Decoder) charge(it *domain, cost int) {
	d.cost += cost
	it.used.cost += cost
}

// Forget drops the state of a session that ended.
func (d *Decoder) Forget(s Session) {
	for key, e := range d.domains {
		if key.session == s {
			d.drop(e)
		}
	}
}

// Lost is how many data records of a domain were sent but have not come, and how often its exporter restarted, since
// the domain was first heard; 0 for an unknown domain.
func (d *Decoder) Lost(s Session, domainID uint32) (records, restarts uint64) {
	e, ok := d.domains[domainKey{s, domainID}]
	if !ok {
		return 0, 0
	}
	sequence := &e.Value.(*domain).sequence
	return sequence.Lost, sequence.Restarts
}
