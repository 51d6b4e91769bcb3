package trace

import (
	"encoding/binary"
	"fmt"
	"heddle/internal/diagnose"
	"io"
)

// linkEthernet is LINKTYPE_ETHERNET, the only link type there is a switch for.
const linkEthernet = 1

// maxBlock bounds a record of a capture file, in bytes.
const maxBlock = 1 << 20

// Capture is what a capture file holds.
type Capture struct {
	Frames [][]byte
	// Cut are the frames, counted from 1, that the file holds only the beginning of: bytes that are missing are zero.
	Cut []int
	// More says that the file holds more than MaxFrames; they were not read.
	More bool
}

// ReadCapture reads the Ethernet frames of a pcap or pcapng file, in the order of the file. An error says at which
// byte.
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
	if len(c.out.Frames) == 0 {
		return nil, fmt.Errorf("there is no frame in the file")
	}
	return c.out, nil
}

type captureReader struct {
	r     io.Reader
	at    int64 // bytes read
	order binary.ByteOrder
	links []uint16 // link types of pcapng's interfaces in the present section
	out   *Capture
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

// add takes in a frame of length bytes of which the file has those in b; full is false when no more is wanted.
func (c *captureReader) add(b []byte, length uint32) (wanted bool, err error) {
	switch {
	case len(c.out.Frames) == diagnose.MaxFrames:
		c.out.More = true
		return false, nil
	case length > diagnose.MaxLength || len(b) > diagnose.MaxLength:
		return false, fmt.Errorf("at byte %d: frame %d has %d bytes: the longest that can be traced has %d; one "+
			"captured on a device with offloads is many frames in one (ethtool -K DEVICE gro off)",
			c.at, len(c.out.Frames)+1, max(int(length), len(b)), diagnose.MaxLength)
	}
	if int(length) > len(b) {
		b = append(b, make([]byte, int(length)-len(b))...)
		c.out.Cut = append(c.out.Cut, len(c.out.Frames)+1)
	}
	c.out.Frames = append(c.out.Frames, b)
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
		if wanted, err := c.add(b, c.order.Uint32(head[12:])); !wanted || err != nil {
			return err
		}
	}
}

func notEthernet(link uint16) error {
	return fmt.Errorf("the capture's link type is %d and not Ethernet (1): capture on the port's device and not on "+
		"\"any\"", link)
}
