package ipfix

import (
	"container/list"
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"
)

// Error is what is wrong with a message, and where.
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
// 7011 §3.4.1, §8). Over UDP a template that did not come in the session is looked for in the exporter's others; see
// Result.Borrowed. Over TCP, call Decoder.Forget when a connection has ended.
type Session struct {
	Protocol            uint8 // TCP, UDP or SCTP
	Exporter, Collector netip.AddrPort
}

// Limits bound what a Decoder keeps, whatever it is sent. Zero fields stand for their defaults. Where Domains or Fields
// are used up, a domain goes of a session that has more than an eighth of them, or else of any: the one that was silent
// longest. So an exporter that goes wrong does not push out others.
type Limits struct {
	Domains        int // observation domains of all sessions. Default 1024.
	Templates      int // of one domain; more are refused. Default 1024.
	TemplateFields int // of one template; larger ones are refused. Default 512.
	// all templates together, each counting as 16 and one for each field. Default 262144, at most 6 MB.
	Fields int
	// Lifetime is how long a template that came over UDP and was not sent again is used (RFC 7011 §8.4). Default 30
	// minutes.
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

// Decoder reads messages of any number of exporters and keeps their templates. It is for one goroutine.
type Decoder struct {
	limits  Limits
	domains map[domainKey]*list.Element // of *domain
	recent  *list.List                  // the domain heard last is in front
	used    map[Session]*usage          // of every session that has a domain
	origins map[origin][]*domain        // over UDP: the domains that sent templates, the one that did last in front
	cost    int                         // of all templates
	places  []Place                     // of the record that is being visited
}

// usage is what a session takes.
type usage struct{ domains, cost int }

// greedy is the fraction of a limit above which a session counts as greedy: one part in so many.
const greedy = 8

type domainKey struct {
	session Session
	id      uint32
}

// domain is what is kept of an observation domain.
type domain struct {
	key       domainKey
	templates map[uint16]*kept
	sequence  Sequence
	used      *usage // of its session
	refused   bool   // a template of the session was not kept
}

// kept is a template and when it came last.
type kept struct {
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

// Header is that of a message (RFC 7011 §3.1).
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

// Result is what a message had.
type Result struct {
	Header Header
	// Records is the number of data records that were handed over, options records among them.
	Records int
	// Templates is how many came, the same again or not; Redefined how many of them changed one with the same id,
	// Refused how many were not kept for the Limits. Withdrawn is the number of templates that were withdrawn.
	Templates, Redefined, Refused, Withdrawn int
	// Unknown is the number of data sets without a template: it has not come, or is too old, or was refused. They are
	// dropped, and not kept until it comes: an exporter sends templates first, and again and again over UDP. Reserved
	// is the number of sets with an id that has no meaning (RFC 7011 §3.3.2).
	Unknown, Reserved int
	// Borrowed is the number of data sets that were read by a template from another session of the same exporter
	// address and domain. That is done over UDP, for ids that have no template in the session.
	Borrowed int
	// Lost is how many more records of the domain are lost than before the message; negative when some were only late.
	Lost int64
}

// Decode reads a message, which must be whole, that came at the given time, keeps its templates, and hands its data
// records to visit one after the other; a record and its values are valid until visit returns, as the message's bytes
// are. What visit returns ends the reading and comes back. A message with a fault gives an *Error, and what comes
// before the fault has been taken, except that nothing is when header or sets do not fit together.
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

// domainOf is the domain, as the one heard last.
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
	it := &domain{key: key, templates: map[uint16]*kept{}, used: u}
	d.domains[key] = d.recent.PushFront(it)
	return it
}

// victim is the domain that makes room: of a greedy session when there is one.
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

// charge puts the cost of a template into the books.
func (d *Decoder) charge(it *domain, cost int) {
	d.cost += cost
	it.used.cost += cost
}

// Forget drops what is known of a session that ended.
func (d *Decoder) Forget(s Session) {
	for key, e := range d.domains {
		if key.session == s {
			d.drop(e)
		}
	}
}

// Lost is how many data records of a domain were sent and have not come, and how often its exporter began anew, since
// the domain was first heard; 0 when nothing is known of it.
func (d *Decoder) Lost(s Session, domainID uint32) (records, restarts uint64) {
	e, ok := d.domains[domainKey{s, domainID}]
	if !ok {
		return 0, 0
	}
	sequence := &e.Value.(*domain).sequence
	return sequence.Lost, sequence.Restarts
}
