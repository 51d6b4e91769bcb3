package leaks

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
)

// held says whether somebody has a table that is still there: a process a descriptor of it, a program its use, a bpf
// file system a pin. The kernel frees a table that nobody has when it gets to that, on a machine under load after
// minutes (6.18: tables of programs to jump to); nothing was forgotten then.
func (o object) held(where string) bool {
	if o.kind != "table" {
		return true
	}
	if path, pinned := strings.CutPrefix(where, "pinned at "); pinned {
		if _, err := os.Stat(path); err == nil {
			return true
		}
	}
	return o.open() || o.used()
}

// open says whether a process has a descriptor of the table.
func (o object) open() bool {
	files, err := filepath.Glob("/proc/[0-9]*/fdinfo/*")
	if err != nil {
		return true
	}
	line := fmt.Sprintf("map_id:\t%d\n", o.id)
	return slices.ContainsFunc(files, func(f string) bool {
		text, err := os.ReadFile(f)
		return err == nil && strings.Contains(string(text), line)
	})
}

// used says whether a program in the kernel uses the table.
func (o object) used() bool {
	for id, err := ebpf.ProgramGetNextID(0); err == nil; id, err = ebpf.ProgramGetNextID(id) {
		p, err := ebpf.NewProgramFromID(id)
		if err != nil {
			continue // gone since
		}
		info, err := p.Info()
		p.Close()
		if err != nil {
			return true
		}
		if maps, _ := info.MapIDs(); slices.Contains(maps, ebpf.MapID(o.id)) {
			return true
		}
	}
	return false
}
