package dataplane

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// Repin restores pins that somebody removed while this process had their objects open, and returns how many were
// missing. Without the pins the switch would stop with the process. The directory must be on a bpf file system again.
func (k *Kernel) Repin() (missing int, err error) {
	dirs := []string{k.links.dir, k.egress.dir, k.gen.dir}
	if k.overlays.loaded {
		dirs = append(dirs, k.overlays.dir)
		for _, l := range k.overlays.links() {
			dirs = append(dirs, l.dir)
		}
	}
	for _, dir := range dirs {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return 0, fmt.Errorf("make the pin directory: %w", err)
		}
	}
	var errs []error
	put := func(path string, pin func(string) error) {
		_, err := os.Lstat(path)
		if err == nil {
			return
		}
		if errors.Is(err, fs.ErrNotExist) {
			missing++
			err = pin(path)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("put back %s: %w", path, err))
		}
	}
	put(filepath.Join(k.gen.dir, recordPin), func(path string) error { return pinAgain(k.gen.record, path) })
	for name, m := range k.sharedMaps() {
		put(filepath.Join(k.gen.dir, name), func(path string) error { return pinAgain(m, path) })
	}
	for name, m := range k.overlays.pinned() {
		put(filepath.Join(k.overlays.dir, name), func(path string) error { return pinAgain(m, path) })
	}
	for _, of := range append(k.overlays.links(), k.links, k.egress) {
		for index, l := range of.byIndex {
			put(of.path(index), func(path string) error { return pinLinkAgain(l, path) })
		}
	}
	return missing, errors.Join(errs...)
}

// sharedMaps returns the tables that outlive the process, by the names under which they are pinned.
func (k *Kernel) sharedMaps() map[string]*ebpf.Map {
	out := map[string]*ebpf.Map{}
	v := reflect.ValueOf(k.objects.vswitchMaps)
	for i := range v.NumField() {
		name := v.Type().Field(i).Tag.Get("ebpf")
		if m, ok := v.Field(i).Interface().(*ebpf.Map); ok && pinned(name) {
			out[name] = m
		}
	}
	return out
}

// pinAgain pins through a second handle, because the first handle counts as already pinned.
func pinAgain(m *ebpf.Map, path string) error {
	again, err := m.Clone()
	if err != nil {
		return err
	}
	return errors.Join(again.Pin(path), again.Close())
}

// pinLinkAgain makes the link forget its lost pin. Opening the link by its id instead would need CAP_SYS_ADMIN, which
// the packaged agent does not have.
func pinLinkAgain(l link.Link, path string) error {
	if err := l.Unpin(); err != nil {
		return err
	}
	return l.Pin(path)
}
