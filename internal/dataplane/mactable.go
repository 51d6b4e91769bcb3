package dataplane

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/cilium/ebpf"

	"heddle/internal/abi"
)

// MACTable returns how many learned MACs the table in the kernel can hold.
func (k *Kernel) MACTable() int { return int(k.objects.Macs.MaxEntries()) }

// sizeMACTable returns how many learned MACs the new table must hold: the configured number (0 = the default). If the
// pinned table contains more than that now, it keeps its size, so that no learned MAC is lost.
func sizeMACTable(all []*generation, wanted int, log *slog.Logger) (uint32, error) {
	size := uint32(cmp.Or(wanted, abi.DefaultMACs))
	for _, g := range all {
		pinned, ok := g.layout.Tables["macs"]
		if !ok || g.phase != complete || pinned.Entries <= size {
			continue
		}
		known, err := countEntries(filepath.Join(g.dir, "macs"))
		if err != nil {
			return 0, fmt.Errorf("count learned MACs: %w", err)
		}
		if known > size {
			log.Warn("more MACs are learned than host.macTable allows: the table keeps its size until the agent is "+
				"restarted with fewer",
				"learned", known, "macTable", size, "kept", pinned.Entries)
			size = pinned.Entries
		}
	}
	return size, nil
}

// countEntries counts the entries of a pinned table.
func countEntries(path string) (n uint32, err error) {
	m, err := ebpf.LoadPinnedMap(path, nil)
	if err != nil {
		return 0, err
	}
	defer m.Close()
	it := m.Iterate()
	for key, value := []byte(nil), []byte(nil); it.Next(&key, &value); {
		n++
	}
	if err := it.Err(); !errors.Is(err, ebpf.ErrIterationAborted) {
		return n, err
	}
	return n, nil
}
