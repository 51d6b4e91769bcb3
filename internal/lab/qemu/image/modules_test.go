package image

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heddle/internal/test/testkit"
)

// moduleObject makes an ELF object that has nothing but a .modinfo section.
func moduleObject(t *testing.T, info ...string) []byte {
	t.Helper()
	const headerSize, sectionSize = 64, 64
	names := "\x00.modinfo\x00.shstrtab\x00"
	data := strings.Join(info, "\x00") + "\x00"
	h := elf.Header64{Type: uint16(elf.ET_REL), Machine: uint16(elf.EM_X86_64), Version: 1, Ehsize: headerSize,
		Shoff: uint64(headerSize + len(names) + len(data)), Shentsize: sectionSize, Shnum: 3, Shstrndx: 2}
	copy(h.Ident[:], elf.ELFMAG+"\x02\x01\x01")
	sections := []elf.Section64{{},
		{Name: 1, Type: uint32(elf.SHT_PROGBITS), Off: uint64(headerSize + len(names)), Size: uint64(len(data))},
		{Name: 10, Type: uint32(elf.SHT_STRTAB), Off: headerSize, Size: uint64(len(names))},
	}
	var b bytes.Buffer
	for _, part := range []any{h, []byte(names), []byte(data), sections} {
		if err := binary.Write(&b, binary.LittleEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// tree writes a module directory: file name → its "depends=" value.
func tree(t *testing.T, builtin string, modules map[string]string) *moduleTree {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "modules.builtin"), []byte(builtin), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, deps := range modules {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, moduleObject(t, "license=GPL", "depends="+deps, "name=x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := readModuleTree(dir)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// names returns the order as text.
func names(list []module) string {
	var all []string
	for _, m := range list {
		all = append(all, m.name)
	}
	return strings.Join(all, " ")
}

// TestModules_DependenciesComeFirst: the order can be loaded by insmod, each module once, what is built in left out.
func TestModules_DependenciesComeFirst(t *testing.T) {
	kernel := tree(t, "kernel/net/stp.ko\nkernel/lib/built-in.ko\n", map[string]string{
		"kernel/net/top.ko": "left,right,built-in", "kernel/a/left.ko": "base", "kernel/b/right.ko": "base,stp",
		"kernel/base.ko": "",
	})
	list, err := kernel.closure(t.Context(), "top", "base")
	if err != nil {
		t.Fatal(err)
	}
	if got := names(list); got != "base left right top" {
		t.Errorf("order: %s", got)
	}
	if list, err := kernel.closure(t.Context(), "built_in"); err != nil || len(list) != 0 {
		t.Errorf("a module that is built in gave %s, %v", names(list), err)
	}
}

// TestModules_MissingOnesAreNamed: with the one that needs it.
func TestModules_MissingOnesAreNamed(t *testing.T) {
	kernel := tree(t, "", map[string]string{"top.ko": "gone"})
	if _, err := kernel.closure(t.Context(), "top"); err == nil ||
		!strings.Contains(err.Error(), "gone (needed by top)") {
		t.Errorf("got: %v", err)
	}
}

// TestModules_CompressedOnesAreUnpacked: as Debian 13 (xz) and Ubuntu (zstd) ship them.
func TestModules_CompressedOnesAreUnpacked(t *testing.T) {
	for _, tool := range []string{"xz", "zstd"} {
		t.Run(tool, func(t *testing.T) {
			testkit.Tool(t, tool)
			want := moduleObject(t, "depends=")
			plain := filepath.Join(t.TempDir(), "m.ko")
			if err := os.WriteFile(plain, want, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := output(t.Context(), "", tool, "-q", "-k", plain); err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(plain); err != nil {
				t.Fatal(err)
			}
			kernel, err := readModuleTree(filepath.Dir(plain))
			if err != nil {
				t.Fatal(err)
			}
			list, err := kernel.closure(t.Context(), "m")
			if err != nil || len(list) != 1 || !bytes.Equal(list[0].data, want) {
				t.Errorf("got %s, %v", names(list), err)
			}
		})
	}
}

// TestModules_RefusesWhatIsNoModule: damaged files are an error that names the module.
func TestModules_RefusesWhatIsNoModule(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "bad.ko"), []byte("no ELF"), 0o600); err != nil {
		t.Fatal(err)
	}
	kernel, err := readModuleTree(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kernel.closure(t.Context(), "bad"); err == nil || !strings.Contains(err.Error(), "module bad") {
		t.Errorf("got: %v", err)
	}
}
