package outside

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"

	"heddle/internal/abi"
	"heddle/internal/dataplane/entries"
)

// Tables are those of the tunnels, or the two of the switch program by which it finds them.
type Tables struct{ Locations, Endpoints *ebpf.Map }

// Show has the switch program read the tunnels' tables, which it keeps.
func (in Tables) Show(tunnels Tables) error {
	err := errors.Join(in.Locations.Put(uint32(0), tunnels.Locations), in.Endpoints.Put(uint32(0), tunnels.Endpoints))
	if err != nil {
		return fmt.Errorf("let the switch program read where stations of other hosts are: %w", err)
	}
	return nil
}

// Copy is a copy of the tunnels' tables; nothing on a host without a tunnel.
type Copy struct {
	locations table[abi.LocationKey, abi.Location]
	endpoints table[uint32, abi.Endpoint]
}

// Read copies the tables.
func (c *Copy) Read(tunnels Tables) error {
	if tunnels.Locations == nil {
		return nil
	}
	if err := errors.Join(c.locations.read(tunnels.Locations), c.endpoints.read(tunnels.Endpoints)); err != nil {
		return fmt.Errorf("copy where stations of other hosts are: %w", err)
	}
	return nil
}

// Show has a dry run's switch program read the copy, in tables of its own: its frames change them as others do the
// live ones.
func (c *Copy) Show(in Tables) error {
	if c.endpoints.spec == nil {
		return nil
	}
	locations, err := c.locations.make()
	if err != nil {
		return err
	}
	defer locations.Close()
	endpoints, err := c.endpoints.make()
	if err != nil {
		return err
	}
	defer endpoints.Close()
	return in.Show(Tables{locations, endpoints})
}

// table is a copy of one table.
type table[K, V any] struct {
	spec    *ebpf.MapSpec
	entries entries.Of[K, V]
}

func (t *table[K, V]) read(m *ebpf.Map) error {
	t.spec = &ebpf.MapSpec{Type: m.Type(), KeySize: m.KeySize(), ValueSize: m.ValueSize(), Flags: m.Flags(),
		MaxEntries: m.MaxEntries()}
	return t.entries.Read(m)
}

// make makes a table with the entries.
func (t *table[K, V]) make() (*ebpf.Map, error) {
	m, err := ebpf.NewMap(t.spec)
	if err == nil {
		err = t.entries.Write(m)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make a table for a dry run: %w", err), m.Close())
	}
	return m, nil
}
