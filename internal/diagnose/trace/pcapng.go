package trace

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Blocks of pcapng (draft-ietf-opsawg-pcapng §4).
const (
	blockSection   = 0x0a0d0d0a
	blockInterface = 1
	blockSimple    = 3
	blockEnhanced  = 6
)

// pcapng reads blocks; the type of the first one has been read.
func (c *captureReader) pcapng() error {
	c.order = binary.LittleEndian
	kind, err := uint32(blockSection), error(nil)
	for {
		var wanted bool
		if wanted, err = c.oneBlock(kind); !wanted || err != nil {
			return err
		}
		b, err := c.take(4)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("at byte %d: the file ends within a block's type", c.at)
		}
		kind = c.order.Uint32(b)
	}
}

// oneBlock reads a block of that type; false if no more frames are wanted.
func (c *captureReader) oneBlock(kind uint32) (bool, error) {
	size, err := c.block(4, "a block's length")
	if err != nil {
		return false, err
	}
	var magic []byte
	if kind == blockSection {
		if magic, err = c.section(); err != nil {
			return false, err
		}
	}
	n := c.order.Uint32(size)
	head := uint32(12 + len(magic)) // both lengths and the type
	if n < head || n%4 != 0 {
		return false, fmt.Errorf("at byte %d: a block of %d bytes: the file is damaged", c.at, n)
	}
	b, err := c.block(n-head, "a block")
	if err != nil {
		return false, err
	}
	again, err := c.block(4, "a block's second length")
	if err != nil {
		return false, err
	}
	if c.order.Uint32(again) != n {
		return false, fmt.Errorf("at byte %d: a block is %d bytes long at its beginning and %d at its end: the file "+
			"is damaged", c.at, n, c.order.Uint32(again))
	}
	return c.content(kind, b)
}

// section reads the magic number of a section, which determines its byte order.
func (c *captureReader) section() ([]byte, error) {
	magic, err := c.block(4, "a section's header")
	if err != nil {
		return nil, err
	}
	switch binary.LittleEndian.Uint32(magic) {
	case 0x1a2b3c4d:
		c.order = binary.LittleEndian
	case 0x4d3c2b1a:
		c.order = binary.BigEndian
	default:
		return nil, fmt.Errorf("at byte %d: a section begins with %x: the file is damaged", c.at, magic)
	}
	c.links, c.own = nil, false
	return magic, nil
}

// content processes the content of a block.
func (c *captureReader) content(kind uint32, b []byte) (bool, error) {
	short := fmt.Errorf("at byte %d: a block of type %d is too short: the file is damaged", c.at, kind)
	switch kind {
	case blockSection:
		if len(b) >= 12 { // version and length
			c.own = c.option(b[12:], 4) == "heddle capture"
		}
	case blockInterface:
		if len(b) < 8 {
			return false, short
		}
		c.links = append(c.links, c.link(b))
		if len(c.links) > maxBlock/20 {
			return false, fmt.Errorf("at byte %d: more than %d interfaces: the file is damaged", c.at, maxBlock/20)
		}
	case blockEnhanced:
		if len(b) < 20 {
			return false, short
		}
		held, length := c.order.Uint32(b[12:]), c.order.Uint32(b[16:])
		if uint64(held) > uint64(len(b)-20) {
			return false, short
		}
		options := b[min(len(b), 20+(int(held)+3)&^3):]
		return c.frame(c.order.Uint32(b), b[20:20+held], length, options)
	case blockSimple:
		if len(b) < 4 {
			return false, short
		}
		length := c.order.Uint32(b)
		return c.frame(0, b[4:4+min(int64(length), int64(len(b)-4))], length, nil)
	}
	return true, nil // names, statistics and other content
}

func (c *captureReader) frame(on uint32, b []byte, length uint32, options []byte) (bool, error) {
	switch {
	case uint64(on) >= uint64(len(c.links)):
		return false, fmt.Errorf("at byte %d: a frame of interface %d, which the file has not described: it is damaged",
			c.at, on)
	case c.links[on].kind != linkEthernet:
		return false, notEthernet(c.links[on].kind)
	}
	return c.add(b[:len(b):len(b)], length, c.remark(c.links[on], options))
}
