package trace

import (
	"encoding/binary"
	"fmt"
	"heddle/internal/diagnose"
	"io"
	"slices"
)

// linkEthernet is LINKTYPE_ETHERNET, the only link type that a switch can handle.
const linkEthernet = 1

// maxBlock bounds a record of a capture file, in bytes.
const maxBlock = 1 << 20

// Capture is the content of a capture file.
type Capture struct {
	Frames [][]byte
	// Numbers are the positions of Frames in the file, from 1.
	Numbers []int
	// Ports are set for a file that "heddle capture" wrote: where each of Frames entered the switch, a port or
	// SWITCH/UPLINK, with HOST: before it where it was on several hosts. Frames that left the switch there are left
	// out: Out is their number. nil for the files of other programs, which do not say what a direction means.
	Ports []string
	Out   int
	// Cut are the numbers of frames of which the file has only the beginning: missing bytes are zero.
	Cut []int
	// Segmented are the numbers of frames whose sender left segmentation to the device: the first segment is traced.
	// Long are the numbers of frames that are left out because they are longer than any frame.
	Segmented, Long []int
	// More: the file has more than MaxFrames frames; the rest was not read.
	More bool
}

// keep removes the frames for which f returns false.
func (c *Capture) keep(f func(i int) bool) {
	was := *c
	c.Frames, c.Numbers, c.Ports = nil, nil, nil
	for i := range was.Frames {
		if f(i) {
			c.Frames, c.Numbers = append(c.Frames, was.Frames[i]), append(c.Numbers, was.Numbers[i])
			if was.Ports != nil {
				c.Ports = append(c.Ports, was.Ports[i])
			}
		}
	}
	kept := make(map[int]bool, len(c.Numbers))
	for _, n := range c.Numbers {
		kept[n] = true
	}
	gone := func(number int) bool { return !kept[number] }
	c.Cut, c.Segmented = slices.DeleteFunc(c.Cut, gone), slices.DeleteFunc(c.Segmented, gone)
}

// Entered returns the ports and uplinks by which the frames entered, as far as the file says so.
func (c *Capture) Entered() []string {
	all := slices.Clone(c.Ports)
	slices.Sort(all)
	return slices.Compact(all)
}

// Only removes frames that did not enter at that port or uplink and returns how many.
func (c *Capture) Only(port string) int {
	before := len(c.Frames)
	ports := c.Ports
	c.keep(func(i int) bool { return ports[i] == port })
	return before - len(c.Frames)
}

// ReadCapture reads the Ethernet frames of a pcap or pcapng file, in the order of the file. An error has the offset in
// bytes.
func ReadCapture(r io.Reader) (*Capture, error) {
	c := &captureReader{r: r, out: &Capture{}}
	magic, err := c.take(4)
	if err != nil {
		return nil, fmt.Errorf("not a capture file: it has less than 4 bytes")
	}
	switch binary.LittleEndian.Uint32(magic) {
	case 0xa1b2c3d4, 0xa1b23c4d:
		c.order = binary.LittleEndian
		err = c.pcap()
	case 0xd4c3b2a1, 0x4d3cb2a1:
		c.order = binary.BigEndian
		err = c.pcap()
	case 0x0a0d0d0a:
		err = c.pcapng()
	default:
		err = fmt.Errorf("not a pcap or pcapng file: it begins with %x", magic)
	}
	if err != nil {
		return nil, err
	}
	c.once()
	switch {
	case len(c.out.Frames) > 0:
		return c.out, nil
	case c.out.Out > 0:
		return nil, fmt.Errorf("no frame in the file entered the switch: those captured were on their way out of it, " +
			"or " +
			"came from the host itself")
	case len(c.out.Long) > 0:
		return nil, fmt.Errorf("all frames of the file are longer than %d bytes: those of a device with offloads are "+
			"many frames in one (ethtool -K DEVICE gro off)", diagnose.MaxLength)
	}
	return nil, fmt.Errorf("there is no frame in the file")
}

// once removes the records of drops of frames that are also recorded when they entered.
func (c *captureReader) once() {
	if slices.Contains(c.dropped, false) {
		dropped := c.dropped
		c.out.keep(func(i int) bool { return !dropped[i] })
	}
}

type captureReader struct {
	r     io.Reader
	at    int64 // bytes read
	order binary.ByteOrder
	links []captureLink // pcapng's interfaces in the present section
	own   bool          // the section is of "heddle capture"
	count int           // frames of the file so far
	// dropped reports for each frame of out whether it is the record of its drop.
	dropped []bool
	out     *Capture
}

// captureLink is an interface of a file; port is its name in the form of Capture.Ports.
type captureLink struct {
	kind       uint16
	name, port string
}

func (c *captureReader) take(n int) ([]byte, error) {
	b := make([]byte, n)
	got, err := io.ReadFull(c.r, b)
	c.at += int64(got)
	return b[:got], err
}

// block reads n bytes that must be there.
func (c *captureReader) block(n uint32, what string) ([]byte, error) {
	if n > maxBlock {
		return nil, fmt.Errorf("at byte %d: %s of %d bytes: the file is damaged", c.at, what, n)
	}
	b, err := c.take(int(n))
	if err != nil {
		return nil, fmt.Errorf("at byte %d: the file ends within %s", c.at, what)
	}
	return b, nil
}

// add adds a frame of length bytes, of which the file has b; wanted is false if no more frames are wanted.
func (c *captureReader) add(b []byte, length uint32, r remark) (wanted bool, err error) {
	c.count++
	switch {
	case r.out || r.fromHost:
		c.out.Out++
		return true, nil
	case len(c.out.Frames) == diagnose.MaxFrames:
		c.out.More = true
		return false, nil
	}
	if first, n := firstSegment(b, length, r.segment); n < length {
		b, length = first, n
		c.out.Segmented = append(c.out.Segmented, c.count)
	}
	if length > diagnose.MaxLength || len(b) > diagnose.MaxLength {
		c.out.Long = append(c.out.Long, c.count)
		return true, nil
	}
	if int(length) > len(b) {
		b = append(b, make([]byte, int(length)-len(b))...)
		c.out.Cut = append(c.out.Cut, c.count)
	}
	c.out.Frames, c.out.Numbers = append(c.out.Frames, b), append(c.out.Numbers, c.count)
	c.dropped = append(c.dropped, r.dropped)
	if c.own {
		c.out.Ports = append(c.out.Ports, r.port)
	}
	return true, nil
}

func (c *captureReader) pcap() error {
	head, err := c.block(20, "the file's header")
	if err != nil {
		return err
	}
	if link := c.order.Uint32(head[16:]) & 0xffff; link != linkEthernet {
		return notEthernet(uint16(link))
	}
	for {
		head, err := c.take(16)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("at byte %d: the file ends within a frame's header", c.at)
		}
		b, err := c.block(c.order.Uint32(head[8:]), "a frame")
		if err != nil {
			return err
		}
		if wanted, err := c.add(b, c.order.Uint32(head[12:]), remark{}); !wanted || err != nil {
			return err
		}
	}
}

func notEthernet(link uint16) error {
	return fmt.Errorf("the capture's link type is %d and not Ethernet (1): capture on the port's device and not on "+
		"\"any\"", link)
}
