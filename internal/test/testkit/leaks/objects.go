package leaks

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/pin"
)

// object is a program, table or link in the kernel. The kernel does not give a number again for long.
type object struct {
	kind string
	id   uint64
}

func (o object) String() string { return fmt.Sprintf("%s %d", o.kind, o.id) }

// Objects are what a test's agents made in the kernel.
type Objects struct {
	mu    sync.Mutex
	found map[object]string // where each was seen
}

// Process adds what a running process holds, such as an agent that serves.
func (o *Objects) Process(t testing.TB, pid int) {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fdinfo/*", pid))
	if err != nil {
		t.Error(err)
	}
	for _, f := range files {
		o.add(fmt.Sprintf("of process %d", pid), objectsIn(f)...)
	}
}

// Pins adds what is pinned below a directory of a bpf file system, once nobody changes that any more.
func (o *Objects) Pins(t testing.TB, dir string) {
	t.Helper()
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return
	}
	for p, err := range pin.WalkDir(dir, nil) {
		if err != nil {
			return // not mounted: there is no agent's directory, or its end has removed it
		}
		var fd int
		switch x := p.Object.(type) {
		case *ebpf.Map:
			fd = x.FD()
		case *ebpf.Program:
			fd = x.FD()
		case interface{ FD() int }:
			fd = x.FD()
		case link.Link:
			if info, err := x.Info(); err == nil {
				o.add("pinned at "+p.Path, object{"link", uint64(info.ID)}, object{"program", uint64(info.Program)})
			}
			continue
		default:
			continue
		}
		o.add("pinned at "+p.Path, objectsIn(fmt.Sprintf("/proc/self/fdinfo/%d", fd))...)
	}
}

func (o *Objects) add(where string, list ...object) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, x := range list {
		o.found[x] = where
	}
}

// objectsIn reads which objects a descriptor's fdinfo names: a link's names its program too.
func objectsIn(fdinfo string) (list []object) {
	text, err := os.ReadFile(fdinfo)
	if err != nil {
		return nil // closed since
	}
	for _, line := range strings.Split(string(text), "\n") {
		key, value, _ := strings.Cut(line, ":")
		kind, ok := map[string]string{"prog_id": "program", "map_id": "table", "link_id": "link"}[key]
		if id, err := strconv.ParseUint(strings.TrimSpace(value), 10, 32); ok && err == nil && id != 0 {
			list = append(list, object{kind, id})
		}
	}
	return list
}

// forgotten are the objects that somebody still has.
func (o *Objects) forgotten() []string {
	o.mu.Lock()
	for x, where := range o.found {
		if _, there := x.look(); there && !x.held(where) {
			delete(o.found, x)
		}
	}
	o.mu.Unlock()
	return o.left()
}

// left are the objects that are still there.
func (o *Objects) left() (list []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for x, where := range o.found {
		name, there := x.look()
		if !there {
			delete(o.found, x)
			continue
		}
		list = append(list, strings.Join(strings.Fields(fmt.Sprintf("%s %s, %s", x, name, where)), " "))
	}
	slices.SortFunc(list, cmp.Compare)
	return list
}

// look says whether the object is there, and its name.
func (o object) look() (name string, there bool) {
	switch o.kind {
	case "table":
		m, err := ebpf.NewMapFromID(ebpf.MapID(o.id))
		if err != nil {
			return err.Error(), !errors.Is(err, os.ErrNotExist)
		}
		defer m.Close()
		info, err := m.Info()
		if err != nil {
			return err.Error(), true
		}
		return info.Name, true
	case "program":
		p, err := ebpf.NewProgramFromID(ebpf.ProgramID(o.id))
		if err != nil {
			return err.Error(), !errors.Is(err, os.ErrNotExist)
		}
		defer p.Close()
		info, err := p.Info()
		if err != nil {
			return err.Error(), true
		}
		return info.Name, true
	default:
		l, err := link.NewFromID(link.ID(o.id))
		if err != nil {
			return err.Error(), !errors.Is(err, os.ErrNotExist)
		}
		defer l.Close()
		return "", true
	}
}
