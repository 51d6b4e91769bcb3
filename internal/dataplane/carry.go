package dataplane

import (
	"errors"
	"fmt"
	"path/filepath"
	"unsafe"

	"github.com/cilium/ebpf"

	"heddle/internal/abi"
)

// carry copies the content of tables of another layout in two steps: first all of it, while no device uses the new
// tables; then, when every device does, what was added in between. The content of tables that are not carried is
// written anew by the agent.
type carry struct {
	from []*generation
	to   *generation
	maps *vswitchMaps
	put  *ebpf.Program // heddle_carry
}

// source is one table of a generation whose content is copied.
type source struct {
	*ebpf.Map
	from, to tableLayout
}

// open opens a table of a generation; nil if the generation had none of that name.
func (c *carry) open(g *generation, name string) (*source, error) {
	from, had := g.layout.Tables[name]
	if !had {
		return nil, nil
	}
	m, err := ebpf.LoadPinnedMap(filepath.Join(g.dir, name), nil)
	if err != nil {
		return nil, fmt.Errorf("open table %s of %s: %w", name, filepath.Base(g.dir), err)
	}
	return &source{m, from, c.to.layout.Tables[name]}, nil
}

// each calls f with every generation's table of that name, oldest first.
func (c *carry) each(name string, f func(*generation, *source) error) error {
	for _, g := range c.from {
		s, err := c.open(g, name)
		if err != nil {
			return err
		}
		if s == nil {
			continue
		}
		if err := errors.Join(f(g, s), s.Close()); err != nil {
			return fmt.Errorf("take over table %s: %w", name, err)
		}
	}
	return nil
}

// entries calls f with every entry, in the new layout. If the table changes meanwhile, some entries may be missed or
// visited twice.
func (s *source) entries(f func(key, value []byte) error) error {
	var key, value []byte
	it := s.Iterate()
	for it.Next(&key, &value) {
		if err := f(convert(key, s.from.KeyFields, s.to.KeyFields, s.to.Key),
			convert(value, s.from.ValueField, s.to.ValueField, s.to.Value)); err != nil {
			return err
		}
	}
	if err := it.Err(); !errors.Is(err, ebpf.ErrIterationAborted) {
		return err
	}
	return nil // entries changed too often while they were read
}

// fits returns an error if these tables are too small for the content of the old ones. It changes nothing.
func (c *carry) fits() error {
	err := c.each("port_names", func(_ *generation, s *source) error {
		return s.entries(func(key, name []byte) error {
			port := portID(*(*abi.PortName)(unsafe.Pointer(&name[0])))
			if slot := number(key); slot >= s.to.Entries && port.Name != "" {
				return fmt.Errorf("this program can hold %d ports, and slot %d is taken: disconnect ports with the "+
					"program that runs until slots below that are free, or go on using it", s.to.Entries-1, slot)
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	return c.each("macs", func(_ *generation, s *source) error {
		var n uint32
		if err := s.entries(func(_, _ []byte) error { n++; return nil }); err != nil {
			return err
		}
		if n > s.to.Entries {
			return fmt.Errorf("this program can hold %d learned MACs, and %d are known: go on using the program that "+
				"runs, or lower the limits of its ports first", s.to.Entries, n)
		}
		return nil
	})
}

// first copies everything. No device uses the new tables yet.
func (c *carry) first() error {
	for _, table := range []struct {
		name string
		to   *ebpf.Map
	}{{"port_names", c.maps.PortNames}, {"switch_names", c.maps.SwitchNames}, {"own_marks", c.maps.OwnMarks},
		{"marks", c.maps.Marks}, {"storm_buckets", c.maps.StormBuckets}} {
		err := c.each(table.name, func(_ *generation, s *source) error {
			return s.entries(func(key, value []byte) error {
				if len(trim(value)) == 0 || s.from.Type == ebpf.Array && number(key) >= s.to.Entries {
					return nil
				}
				return table.to.Put(key, value)
			})
		})
		if err != nil {
			return err
		}
	}
	return errors.Join(c.awake(), c.speakers(), c.learned())
}

// awake copies the numbers of the waits that have ended. Programs may end other waits meanwhile.
func (c *carry) awake() error {
	return c.each("awake", func(_ *generation, s *source) error {
		return s.entries(func(key, value []byte) error {
			var have uint64
			over := *(*uint64)(unsafe.Pointer(&value[0]))
			if over == 0 || number(key) >= s.to.Entries {
				return nil
			}
			if err := c.maps.Awake.Lookup(key, &have); err != nil || have >= over {
				return err
			}
			return c.maps.Awake.Put(key, over)
		})
	})
}

// speakers copies which siblings send with which MACs. Programs may write newer entries meanwhile, which have
// precedence.
func (c *carry) speakers() error {
	return c.each("speakers", func(_ *generation, s *source) error {
		return s.entries(func(key, value []byte) error {
			var have abi.Speaker
			then := *(*abi.Speaker)(unsafe.Pointer(&value[0]))
			if then.Word == 0 || number(key) >= s.to.Entries {
				return nil
			}
			if err := c.maps.Speakers.Lookup(key, &have); err != nil || have.Word != 0 && have.Since >= then.Since {
				return err
			}
			return c.maps.Speakers.Put(key, &then)
		})
	})
}

// learned copies the learned MACs, and each port's count of them, while programs may be learning: the port that was
// heard last has precedence.
func (c *carry) learned() error {
	return c.each("macs", func(_ *generation, s *source) error {
		return s.entries(func(key, value []byte) error {
			in := abi.CarriedMAC{Key: *(*abi.MACKey)(unsafe.Pointer(&key[0])),
				Entry: *(*abi.Learned)(unsafe.Pointer(&value[0]))}
			_, err := c.put.Run(&ebpf.RunOptions{Context: bytesOf([]abi.CarriedMAC{in})})
			return err
		})
	})
}

// late copies what was added after first, once no run of the program uses the old tables. It may be repeated.
func (c *carry) late() error {
	if err := errors.Join(c.awake(), c.speakers(), c.learned()); err != nil {
		return err
	}
	return errors.Join(
		c.counted("counts", "counts_before", c.maps.CountsBefore),
		c.counted("rare_counts", "rare_counts_before", c.maps.RareCountsBefore))
}

// counted adds up the counters of that name and the earlier counts that their generation itself had taken over, and
// writes the sum to the table of earlier counts.
func (c *carry) counted(counts, before string, to *ebpf.Map) error {
	layout := c.to.layout.Tables[before]
	sums := make([][]uint64, layout.Entries)
	for slot := range sums {
		sums[slot] = make([]uint64, layout.Value/8)
	}
	for _, name := range []string{counts, before} {
		err := c.each(name, func(g *generation, s *source) error {
			if name == before && g.phase != complete {
				return nil // it would repeat the entries of the other generations
			}
			return addCounters(sums, s)
		})
		if err != nil {
			return err
		}
	}
	for slot, sum := range sums {
		if err := to.Put(uint32(slot), bytesOf(sum)); err != nil {
			return fmt.Errorf("take over the counters: %w", err)
		}
	}
	return nil
}

// addCounters adds the counters of a table to sums, by slot. Counters are numbers of 8 bytes.
func addCounters(sums [][]uint64, s *source) error {
	for slot := range min(uint32(len(sums)), s.from.Entries) {
		var perCPU [][]byte
		var err error
		if s.from.Type == ebpf.PerCPUArray {
			err = s.Lookup(slot, &perCPU)
		} else {
			perCPU = make([][]byte, 1)
			err = s.Lookup(slot, &perCPU[0])
		}
		if err != nil {
			return err
		}
		for _, b := range perCPU {
			add(sums[slot], convert(b, s.from.ValueField, s.to.ValueField, s.to.Value))
		}
	}
	return nil
}

func add(sum []uint64, b []byte) {
	for i, n := range unsafe.Slice((*uint64)(unsafe.Pointer(&b[0])), len(b)/8) {
		sum[i] += n
	}
}

// number reads a key of 4 bytes in the host's byte order.
func number(key []byte) uint32 { return *(*uint32)(unsafe.Pointer(&key[0])) }

// trim removes the zeros at the end of a record.
func trim(b []byte) []byte {
	for len(b) > 0 && b[len(b)-1] == 0 {
		b = b[:len(b)-1]
	}
	return b
}
