package image

import (
	"bytes"
	"encoding/binary"
	"os/exec"
	"strings"
	"testing"

	"heddle/internal/test/testkit"
)

// packedKernel makes a bzImage of the form that unpackKernel reads, with two sectors of real-mode code.
func packedKernel(payload []byte) []byte {
	const sectors, gap = 2, 100
	b := make([]byte, (sectors+1)*512+gap)
	b[headerSetupSectors] = sectors
	copy(b[headerMagic:], "HdrS")
	binary.LittleEndian.PutUint32(b[headerPayloadOffset:], gap)
	binary.LittleEndian.PutUint32(b[headerPayloadLength:], uint32(len(payload)+4))
	return append(append(b, payload...), 1, 2, 3, 4)
}

// elfWithNotes makes an ELF file whose only section of interest is .notes.
func elfWithNotes(t *testing.T, notes string) []byte {
	t.Helper()
	object := moduleObject(t, notes)
	// ".modinfo" and ".notes\0\0" have the same length.
	return bytes.Replace(object, []byte(".modinfo"), []byte(".notes\x00\x00"), 1)
}

// TestUnpackKernel: a kernel whose decompression is slow and that can be started decompressed is decompressed,
// everything else is refused with a reason.
func TestUnpackKernel(t *testing.T) {
	note := func(kind byte) string {
		return "\x04\x00\x00\x00\x04\x00\x00\x00" + string(kind) + "\x00\x00\x00Xen\x00ABCD"
	}
	good := elfWithNotes(t, note(6)+note(noteEntry))
	pack := func(tool string, data []byte) []byte {
		testkit.Tool(t, tool)
		cmd := exec.Command(tool, "-c")
		cmd.Stdin = bytes.NewReader(data)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		return packedKernel(out)
	}
	for _, tool := range []string{"xz", "zstd"} {
		got, err := unpackKernel(t.Context(), pack(tool, good))
		if err != nil || !bytes.Equal(got, good) {
			t.Errorf("%s: %d bytes, %v", tool, len(got), err)
		}
	}
	truncated := pack("xz", good)
	for name, c := range map[string]struct {
		kernel []byte
		want   string
	}{
		"no header":      {make([]byte, 4096), "no boot header"},
		"short":          {[]byte("x"), "no boot header"},
		"lz4":            {packedKernel([]byte("\x02\x21\x4c\x18 and so on")), "compression"},
		"truncated":      {truncated[:len(truncated)-8], "outside"},
		"damaged stream": {packedKernel([]byte("\xfd7zXZ\x00 and so on")), "xz"},
		"no entry":       {pack("xz", elfWithNotes(t, note(6))), "entry point"},
		"damaged notes": {pack("xz", elfWithNotes(t, "\xff\xff\xff\xff\xff\xff\xff\xff\x12\x00\x00\x00Xen\x00")),
			"entry point"},
		"no ELF": {pack("xz", []byte("this is text and no ELF file")), "magic number"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := unpackKernel(t.Context(), c.kernel); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: got %v, want %q", name, err, c.want)
			}
		})
	}
}
