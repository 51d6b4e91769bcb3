package qemu

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"heddle/internal/lab/qemu/image"
)

// initrd returns the initramfs to boot: the image's own or, with files to add, a copy in dir followed by a second
// archive. The kernel unpacks both; the second is not compressed, because the emulated guest decompresses more slowly
// than the host loads.
func (o Options) initrd(img *image.Image, dir string) (_ string, err error) {
	if len(o.Files) == 0 {
		return img.Initrd, nil
	}
	var extra image.Archive
	for guest, host := range o.Files {
		if err := extra.HostFile(guest, host); err != nil {
			return "", err
		}
	}
	base, err := os.Open(img.Initrd)
	if err != nil {
		return "", err
	}
	defer base.Close()
	out, err := os.OpenFile(filepath.Join(dir, "initrd"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	n, err := io.Copy(out, base)
	if err != nil {
		return "", err
	}
	// An archive that is not compressed must begin at a multiple of four.
	if _, err := out.Write(make([]byte, (4-n%4)%4)); err != nil {
		return "", err
	}
	_, err = extra.WriteTo(out)
	return out.Name(), err
}
