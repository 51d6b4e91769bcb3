package pcapng

import (
	"encoding/binary"
	"io"
	"time"
)

// Types of blocks (draft-ietf-opsawg-pcapng, section 10.1).
const (
	blockSection    = 0x0A0D0D0A
	blockInterface  = 1
	blockStatistics = 5
	blockPacket     = 6 // enhanced packet
)

// Codes of options; those below 4 mean the same in every block.
const (
	optionEnd     = 0
	optionComment = 1

	sectionOS          = 3
	sectionApplication = 4

	interfaceName        = 2
	interfaceDescription = 3
	interfaceResolution  = 9

	packetFlags = 2

	statisticsReceived = 4 // by the interface
	statisticsDropped  = 7 // by the operating system, because a buffer was full
)

// ethernet is LINKTYPE_ETHERNET.
const ethernet = 1

// nanoseconds is the resolution of time stamps: ten to the power of -9 seconds.
const nanoseconds = 9

// maxOption is the longest value an option can have, in bytes.
const maxOption = 1<<16 - 1

// Direction is which way a packet went, as seen by its interface (the two lowest bits of epb_flags).
type Direction uint32

// The directions.
const (
	Unknown  Direction = 0
	Inbound  Direction = 1
	Outbound Direction = 2
)

// Section is a capture's description of itself; empty fields are left out.
type Section struct {
	Application, OS string
	Comment         string
}

// Interface is one interface of a section.
type Interface struct {
	Name, Description string
	Snap              int // bytes of a packet that are captured at most; 0 = all
}

// Packet is one packet of an interface.
type Packet struct {
	Interface int // as Add gave it
	Time      time.Time
	Direction Direction
	Comment   string
	Length    int    // of the packet, bytes
	Data      []byte // what was captured of it
}

// Statistics are those of an interface at the end of a capture.
type Statistics struct {
	Interface int
	Time      time.Time
	Received  uint64 // packets, including those that were not captured
	Dropped   uint64
	Comment   string
}

// Writer writes one section. Its methods are for one goroutine; errors are those of the underlying writer.
type Writer struct {
	to         io.Writer
	interfaces int
	block      []byte
}

// NewWriter begins a section.
func NewWriter(to io.Writer, s Section) (*Writer, error) {
	w := &Writer{to: to}
	w.begin(blockSection)
	w.u32(0x1A2B3C4D) // byte order
	w.u16(1)          // version 1.0
	w.u16(0)
	w.u64(^uint64(0)) // length of the section: not known
	w.text(optionComment, s.Comment)
	w.text(sectionOS, s.OS)
	w.text(sectionApplication, s.Application)
	w.endOptions()
	return w, w.end()
}

// Add declares an interface and gives its number.
func (w *Writer) Add(i Interface) (int, error) {
	w.begin(blockInterface)
	w.u16(ethernet)
	w.u16(0)
	w.u32(uint32(i.Snap))
	w.text(interfaceName, i.Name)
	w.text(interfaceDescription, i.Description)
	w.option(interfaceResolution, []byte{nanoseconds})
	w.endOptions()
	w.interfaces++
	return w.interfaces - 1, w.end()
}

// Packet writes a packet.
func (w *Writer) Packet(p Packet) error {
	w.begin(blockPacket)
	w.u32(uint32(p.Interface))
	w.time(p.Time)
	w.u32(uint32(len(p.Data)))
	w.u32(uint32(p.Length))
	w.padded(p.Data)
	w.text(optionComment, p.Comment)
	if p.Direction != Unknown {
		w.option(packetFlags, binary.LittleEndian.AppendUint32(nil, uint32(p.Direction)))
	}
	w.endOptions()
	return w.end()
}

// Statistics writes how many packets of an interface were received and lost.
func (w *Writer) Statistics(s Statistics) error {
	w.begin(blockStatistics)
	w.u32(uint32(s.Interface))
	w.time(s.Time)
	w.text(optionComment, s.Comment)
	w.option(statisticsReceived, binary.LittleEndian.AppendUint64(nil, s.Received))
	w.option(statisticsDropped, binary.LittleEndian.AppendUint64(nil, s.Dropped))
	w.endOptions()
	return w.end()
}

// begin starts a block; its length is filled in by end.
func (w *Writer) begin(kind uint32) {
	w.block = w.block[:0]
	w.u32(kind)
	w.u32(0)
}

// end writes the block, its length at both ends.
func (w *Writer) end() error {
	n := uint32(len(w.block) + 4)
	binary.LittleEndian.PutUint32(w.block[4:], n)
	w.u32(n)
	_, err := w.to.Write(w.block)
	return err
}

func (w *Writer) u16(v uint16) { w.block = binary.LittleEndian.AppendUint16(w.block, v) }
func (w *Writer) u32(v uint32) { w.block = binary.LittleEndian.AppendUint32(w.block, v) }
func (w *Writer) u64(v uint64) { w.block = binary.LittleEndian.AppendUint64(w.block, v) }

// time is a time stamp, its upper half first.
func (w *Writer) time(t time.Time) {
	ns := uint64(t.UnixNano())
	w.u32(uint32(ns >> 32))
	w.u32(uint32(ns))
}

// padded adds bytes and zeros up to a multiple of four.
func (w *Writer) padded(b []byte) {
	w.block = append(w.block, b...)
	w.block = append(w.block, make([]byte, -len(b)&3)...)
}

func (w *Writer) option(code uint16, value []byte) {
	w.u16(code)
	w.u16(uint16(len(value)))
	w.padded(value)
}

// text adds an option unless it is empty; a text that is too long is cut.
func (w *Writer) text(code uint16, s string) {
	if s != "" {
		w.option(code, []byte(s[:min(len(s), maxOption)]))
	}
}

func (w *Writer) endOptions() { w.option(optionEnd, nil) }
