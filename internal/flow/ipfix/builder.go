package ipfix

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// ErrFull says that what was to be added does not fit into the message: finish the message, and add it to the next one.
var ErrFull = errors.New("the message is full")

// MinMessage is the smallest bound of a Builder, in bytes: the size that RFC 7011 §10.3.3 allows when an exporter does
// not know the MTU.
const MinMessage = 512 - 28

// Builder makes the messages of one observation domain and one transport session, none longer than its bound: templates
// and records are added until one does not fit, then Message returns the finished message, and the next one begins. It
// is for one goroutine.
type Builder struct {
	domain   uint32
	sequence uint32
	bound    int
	buf      []byte
	// set is the id of the open set, 0 = none; it began at start, and it may end with fewer than least zero bytes.
	set, start, least int
	// records is the number of data records in the present message.
	records uint32
}

// NewBuilder makes a builder of messages of at most bound bytes, the payload of UDP: the MTU less 28 for IPv4 or 48 for
// IPv6, within MinMessage–65535. sequence is how many data records the session has sent before, modulo 2³²: 0 for a new
// one.
func NewBuilder(domain, sequence uint32, bound int) (*Builder, error) {
	if bound < MinMessage || bound > maxMessage {
		return nil, fmt.Errorf("messages of at most %d bytes: want %d–%d", bound, MinMessage, maxMessage)
	}
	return &Builder{domain: domain, sequence: sequence, bound: bound, buf: make([]byte, headerLength, bound)}, nil
}

// Records is the number of data records in the present message: what it adds to the sequence number (RFC 7011 §3.1).
func (b *Builder) Records() int { return int(b.records) }

// Sequence is the sequence number that the present message will have.
func (b *Builder) Sequence() uint32 { return b.sequence }

// Len is the length of the present message so far, in bytes; 0 when nothing was added.
func (b *Builder) Len() int {
	if len(b.buf) == headerLength {
		return 0
	}
	return len(b.buf)
}

// grow appends n bytes to the set with the id, which it opens if necessary, and returns them: the caller must write
// each of them. nil when they don't fit into the message.
func (b *Builder) grow(set, n, least int) []byte {
	if b.set != set {
		if len(b.buf)+b.padding()+setHeaderLength+n > b.bound {
			return nil
		}
		b.closeSet()
		b.set, b.start = set, len(b.buf)
		b.buf = b.buf[:b.start+setHeaderLength]
	} else if len(b.buf)+n > b.bound {
		return nil
	}
	b.least = least
	at := len(b.buf)
	b.buf = b.buf[:at+n]
	return b.buf[at : at+n : at+n]
}

// padding is how many zero bytes the open set needs to end at a multiple of 4; 0 if they could be read as a record (RFC
// 7011 §3.3.1) or don't fit.
func (b *Builder) padding() int {
	n := -len(b.buf) & 3
	if b.set == 0 || n >= b.least || len(b.buf)+n > b.bound {
		return 0
	}
	return n
}

// closeSet writes the header of the open set.
func (b *Builder) closeSet() {
	if b.set == 0 {
		return
	}
	for range b.padding() {
		b.buf = append(b.buf, 0)
	}
	binary.BigEndian.PutUint16(b.buf[b.start:], uint16(b.set))
	binary.BigEndian.PutUint16(b.buf[b.start+2:], uint16(len(b.buf)-b.start))
	b.set = 0
}

// Record adds a record of a template without variable fields and returns its bytes: RecordLength of them, all zero, for
// the caller to fill before it calls anything else. nil when the message is full, and for a template with variable
// fields.
func (b *Builder) Record(t *Template) []byte {
	if t.variable {
		return nil
	}
	rec := b.grow(int(t.id), t.length, t.length)
	if rec != nil {
		clear(rec)
		b.records++
	}
	return rec
}

// Append adds a whole record, of any template. It returns ErrFull if the record does not fit; another error if it is
// not a record of the template, or does not fit into an empty message.
func (b *Builder) Append(t *Template, record []byte) error {
	if n, _, err := t.measure(record, nil); err != nil {
		return fmt.Errorf("record of template %d: %w", t.id, err)
	} else if n != len(record) {
		return fmt.Errorf("record of template %d: %d bytes, of which its fields take %d", t.id, len(record), n)
	}
	if err := b.add(int(t.id), record, t.padding()); err != nil {
		return fmt.Errorf("record of template %d: %w", t.id, err)
	}
	b.records++
	return nil
}

// add adds bytes to a set.
func (b *Builder) add(set int, bytes []byte, least int) error {
	if n := headerLength + setHeaderLength + len(bytes); n > b.bound {
		return fmt.Errorf("needs a message of %d bytes, and messages have at most %d", n, b.bound)
	}
	to := b.grow(set, len(bytes), least)
	if to == nil {
		return ErrFull
	}
	copy(to, bytes)
	return nil
}

// EndSet ends the open set, so that the next addition begins another: some collectors read only one options template
// per set.
func (b *Builder) EndSet() { b.closeSet() }

// leastTemplateRecord is the shortest record of a template set: a withdrawal, or a template without fields.
const leastTemplateRecord = 4

// Template adds a template. It returns ErrFull if it does not fit.
func (b *Builder) Template(t *Template) error {
	record := binary.BigEndian.AppendUint16(make([]byte, 0, t.recordLength()), t.id)
	record = binary.BigEndian.AppendUint16(record, uint16(len(t.fields)))
	if t.Options() {
		record = binary.BigEndian.AppendUint16(record, uint16(t.scope))
	}
	for _, f := range t.fields {
		if f.PEN == IANA {
			record = binary.BigEndian.AppendUint16(record, f.ID)
			record = binary.BigEndian.AppendUint16(record, f.Length)
			continue
		}
		record = binary.BigEndian.AppendUint16(record, f.ID|enterpriseBit)
		record = binary.BigEndian.AppendUint16(record, f.Length)
		record = binary.BigEndian.AppendUint32(record, f.PEN)
	}
	if err := b.add(int(t.set()), record, leastTemplateRecord); err != nil {
		return fmt.Errorf("template %d: %w", t.id, err)
	}
	return nil
}

// Withdraw adds the withdrawal of a template (RFC 7011 §8.1), for TCP and SCTP; over UDP it must not be sent.
func (b *Builder) Withdraw(t *Template) error { return b.withdraw(t.set(), t.id) }

// WithdrawAll adds the withdrawal of all templates, or of all options templates.
func (b *Builder) WithdrawAll(options bool) error {
	if options {
		return b.withdraw(optionsTemplateSet, optionsTemplateSet)
	}
	return b.withdraw(templateSet, templateSet)
}

func (b *Builder) withdraw(set, id uint16) error {
	// A set of its own: withdrawals and templates must not be in the same (RFC 7011 §8.1).
	b.closeSet()
	if err := b.add(int(set), []byte{byte(id >> 8), byte(id), 0, 0}, leastTemplateRecord); err != nil {
		return fmt.Errorf("withdrawal of template %d: %w", id, err)
	}
	b.closeSet()
	return nil
}

// Message finishes the present message and returns it; nil when nothing was added. Its bytes are valid until something
// is added to the next message. exported is when it leaves (RFC 7011 §3.1: whole seconds). The message counts as sent:
// if it gets lost, that shows as a gap in the sequence.
func (b *Builder) Message(exported time.Time) []byte {
	if len(b.buf) == headerLength {
		return nil
	}
	b.closeSet()
	message := b.buf
	binary.BigEndian.PutUint16(message, version)
	binary.BigEndian.PutUint16(message[2:], uint16(len(message)))
	binary.BigEndian.PutUint32(message[4:], uint32(exported.Unix()))
	binary.BigEndian.PutUint32(message[8:], b.sequence)
	binary.BigEndian.PutUint32(message[12:], b.domain)
	b.sequence += b.records
	b.records = 0
	b.buf = b.buf[:headerLength]
	return message
}

// SetExported changes when a finished message leaves, for one that had to wait.
func SetExported(message []byte, exported time.Time) {
	binary.BigEndian.PutUint32(message[4:], uint32(exported.Unix()))
}

// SetSequence changes the sequence number of a finished message, for one that goes to several collectors, each with a
// session of its own.
func SetSequence(message []byte, sequence uint32) { binary.BigEndian.PutUint32(message[8:], sequence) }
