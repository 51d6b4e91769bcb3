package image

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Places in the header of a bzImage (Documentation/arch/x86/boot.rst, "The Real-Mode Kernel Header").
const (
	headerSetupSectors  = 0x1f1 // byte: 512-byte sectors after the first that hold the real-mode code; 0 means 4
	headerMagic         = 0x202 // "HdrS"
	headerPayloadOffset = 0x248 // from the end of the real-mode code
	headerPayloadLength = 0x24c
)

// noteEntry is the type of the ELF note "Xen" with a 32-bit entry point, by which QEMU starts an ELF kernel (PVH).
const noteEntry = 18

// unpackKernel returns the ELF kernel inside a compressed one. Decompressing xz or zstd takes the emulated guest
// seconds, the host a fraction of one. The error says why the kernel should stay as it is: another compression, or no
// entry point for QEMU.
func unpackKernel(ctx context.Context, packed []byte) ([]byte, error) {
	if len(packed) < headerPayloadLength+4 || string(packed[headerMagic:headerMagic+4]) != "HdrS" {
		return nil, errors.New("no boot header")
	}
	sectors := int(packed[headerSetupSectors])
	if sectors == 0 {
		sectors = 4
	}
	begin := (sectors+1)*512 + int(binary.LittleEndian.Uint32(packed[headerPayloadOffset:]))
	end := begin + int(binary.LittleEndian.Uint32(packed[headerPayloadLength:]))
	// The last four bytes are the length of the content and not part of the compressed stream.
	end -= 4
	if begin >= end || end > len(packed) {
		return nil, errors.New("the boot header points outside of the file")
	}
	payload := packed[begin:end]
	tool := ""
	switch {
	case bytes.HasPrefix(payload, []byte("\xfd7zXZ\x00")):
		tool = "xz"
	case bytes.HasPrefix(payload, []byte("\x28\xb5\x2f\xfd")):
		tool = "zstd"
	default:
		return nil, errors.New("its compression is fast, or not known")
	}
	cmd := exec.CommandContext(ctx, tool, "-dc")
	cmd.Stdin = bytes.NewReader(payload)
	kernel, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", tool, err)
	}
	return kernel, checkEntry(kernel)
}

// checkEntry reports whether QEMU can start the ELF kernel.
func checkEntry(kernel []byte) error {
	f, err := elf.NewFile(bytes.NewReader(kernel))
	if err != nil {
		return err
	}
	defer f.Close()
	section := f.Section(".notes")
	if section == nil {
		return errors.New("the kernel has no notes")
	}
	notes, err := section.Data()
	if err != nil {
		return err
	}
	// Each note: length of name, length of description, type, name, description; both padded to four bytes.
	for len(notes) >= 12 {
		nameLen, descLen := int(binary.LittleEndian.Uint32(notes)), int(binary.LittleEndian.Uint32(notes[4:]))
		size := 12 + (nameLen+3)&^3 + (descLen+3)&^3
		if nameLen < 0 || descLen < 0 || size > len(notes) {
			break
		}
		if string(notes[12:12+nameLen]) == "Xen\x00" && binary.LittleEndian.Uint32(notes[8:]) == noteEntry {
			return nil
		}
		notes = notes[size:]
	}
	return errors.New("the kernel has no entry point for QEMU")
}

// placeKernel puts the kernel into the image, decompressed if that makes guests boot faster.
func (o Options) placeKernel(ctx context.Context, packed, result string) error {
	data, err := os.ReadFile(packed)
	if err != nil {
		return err
	}
	kernel, err := unpackKernel(ctx, data)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		o.Log("taking the kernel as it is: %v", err)
		kernel = data
	}
	return os.WriteFile(filepath.Join(result, kernelFile), kernel, 0o644)
}
