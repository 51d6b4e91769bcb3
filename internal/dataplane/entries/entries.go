package entries

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
)

// Of are entries of a table: Keys[i] has Values[i].
type Of[K, V any] struct {
	Keys   []K
	Values []V
}

// Batch is how many entries one system call copies.
const Batch = 4096

// Read adds all entries of a table. Those that change meanwhile are read in their old or new state.
func (e *Of[K, V]) Read(m *ebpf.Map) error {
	n := min(Batch, int(m.MaxEntries()))
	keys, values := make([]K, n), make([]V, n)
	var cursor ebpf.MapBatchCursor
	for {
		n, err := m.BatchLookup(&cursor, keys, values, nil)
		e.Keys, e.Values = append(e.Keys, keys[:n]...), append(e.Values, values[:n]...)
		if errors.Is(err, ebpf.ErrKeyNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Write puts the entries into a table.
func (e *Of[K, V]) Write(m *ebpf.Map) error {
	if len(e.Keys) == 0 {
		return nil
	}
	_, err := m.BatchUpdate(e.Keys, e.Values, nil)
	return err
}

// Empty removes all entries of a table that nobody else uses.
func Empty[K, V any](m *ebpf.Map) error {
	var e Of[K, V]
	if err := e.Read(m); err != nil || len(e.Keys) == 0 {
		return err
	}
	_, err := m.BatchDelete(e.Keys, nil)
	return err
}

// All reads a table as a map.
func All[K comparable, V any](m *ebpf.Map) (map[K]V, error) {
	var e Of[K, V]
	if err := e.Read(m); err != nil {
		return nil, fmt.Errorf("read table %s: %w", m, err)
	}
	all := make(map[K]V, len(e.Keys))
	for i, k := range e.Keys {
		all[k] = e.Values[i]
	}
	return all, nil
}

// Delete removes an entry of a table; it is no error if there is none.
func Delete[K any](m *ebpf.Map, key K) error {
	if err := m.Delete(key); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return err
	}
	return nil
}
