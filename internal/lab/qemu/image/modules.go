package image

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// moduleTree is the /lib/modules/RELEASE directory of an unpacked kernel package. The package has no modules.dep
// (depmod makes it at installation), so the dependencies are read from depmod's own source: the .modinfo section of
// each module.
type moduleTree struct {
	files   map[string]string // module name → file
	builtin map[string]bool   // module names that are part of the kernel itself
}

// moduleName is the kernel's name of a module file: without directory and suffixes, '-' written as '_'.
func moduleName(file string) string {
	base := filepath.Base(file)
	if i := strings.Index(base, ".ko"); i >= 0 {
		base = base[:i]
	}
	return strings.ReplaceAll(base, "-", "_")
}

// readModuleTree finds the modules below dir.
func readModuleTree(dir string) (*moduleTree, error) {
	t := &moduleTree{files: map[string]string{}, builtin: map[string]bool{}}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if ext := filepath.Ext(strings.TrimSuffix(strings.TrimSuffix(p, ".xz"), ".zst")); ext == ".ko" {
			t.files[moduleName(p)] = p
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("kernel modules: %w", err)
	}
	list, err := os.ReadFile(filepath.Join(dir, "modules.builtin"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("kernel modules: %w", err)
	}
	for _, line := range strings.Fields(string(list)) {
		t.builtin[moduleName(line)] = true
	}
	return t, nil
}

// module is one module ready for the initramfs.
type module struct {
	name string
	data []byte // the ELF object, not compressed
}

// closure returns the wanted modules and all their dependencies, in an order in which plain insmod can load them.
// Modules built into the kernel are left out.
func (t *moduleTree) closure(ctx context.Context, wanted ...string) ([]module, error) {
	var order []module
	seen := map[string]bool{}
	var visit func(name, needer string) error
	visit = func(name, needer string) error {
		name = moduleName(name)
		if seen[name] || t.builtin[name] {
			return nil
		}
		seen[name] = true
		file := t.files[name]
		if file == "" {
			return fmt.Errorf("this kernel has no module %s (needed by %s)", name, needer)
		}
		data, err := readModule(ctx, file)
		if err != nil {
			return err
		}
		deps, err := moduleDepends(data)
		if err != nil {
			return fmt.Errorf("module %s: %w", name, err)
		}
		for _, dep := range deps {
			if err := visit(dep, name); err != nil {
				return err
			}
		}
		order = append(order, module{name: name, data: data})
		return nil
	}
	for _, name := range wanted {
		if err := visit(name, "the guest"); err != nil {
			return nil, err
		}
	}
	return order, nil
}

// moduleDepends reads the "depends=" entry of the .modinfo section: names of modules, separated by commas.
func moduleDepends(object []byte) ([]string, error) {
	f, err := elf.NewFile(bytes.NewReader(object))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	section := f.Section(".modinfo")
	if section == nil {
		return nil, errors.New("no .modinfo section: not a kernel module")
	}
	info, err := section.Data()
	if err != nil {
		return nil, err
	}
	for _, item := range strings.Split(string(info), "\x00") {
		if list, ok := strings.CutPrefix(item, "depends="); ok {
			return strings.FieldsFunc(list, func(r rune) bool { return r == ',' }), nil
		}
	}
	return nil, nil
}

// readModule reads a module, and decompresses it: newer distributions compress modules, which not every busybox can
// read.
func readModule(ctx context.Context, file string) ([]byte, error) {
	tool := map[string]string{".xz": "xz", ".zst": "zstd"}[filepath.Ext(file)]
	if tool == "" {
		return os.ReadFile(file)
	}
	if _, err := exec.LookPath(tool); err != nil {
		pkg := map[string]string{"xz": "xz-utils", "zstd": "zstd"}[tool]
		return nil, fmt.Errorf("the kernel's modules are compressed and %s is not installed: install the package %s",
			tool, pkg)
	}
	return output(ctx, "", tool, "-dc", file)
}
