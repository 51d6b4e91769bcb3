package guestlinks

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// notices are what the kernel says of a directory's files.
type notices struct{ *os.File }

// notice is what one reading says: the files that have changed; all, if the kernel has lost what it had to say; over,
// if the directory is gone.
type notice struct {
	files     []string
	all, over bool
}

// noticesOf begins to listen.
func noticesOf(dir string) (notices, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return notices{}, fmt.Errorf("inotify: %w", err)
	}
	_, err = unix.InotifyAddWatch(fd, dir, unix.IN_ONLYDIR|unix.IN_MOVED_TO|unix.IN_MOVED_FROM|unix.IN_CLOSE_WRITE|
		unix.IN_DELETE|unix.IN_DELETE_SELF|unix.IN_MOVE_SELF)
	if err != nil {
		unix.Close(fd)
		return notices{}, fmt.Errorf("watch %s: %w", dir, err)
	}
	return notices{os.NewFile(uintptr(fd), "inotify")}, nil
}

// next waits for the next notice; it ends with an error when the file is closed.
func (n notices) next(buffer []byte) (notice, error) {
	length, err := n.Read(buffer)
	if err != nil {
		return notice{}, err
	}
	return noticeIn(buffer[:length]), nil
}

// noticeIn reads the kernel's records: watch, mask, cookie and length of a name, and the name, filled with zeros.
func noticeIn(b []byte) (n notice) {
	for len(b) >= unix.SizeofInotifyEvent {
		mask, length := binary.NativeEndian.Uint32(b[4:]), int(binary.NativeEndian.Uint32(b[12:]))
		b = b[unix.SizeofInotifyEvent:]
		if length > len(b) {
			break
		}
		name, _, _ := bytes.Cut(b[:length], []byte{0})
		b = b[length:]
		switch {
		case mask&unix.IN_Q_OVERFLOW != 0:
			n.all = true
		case mask&(unix.IN_IGNORED|unix.IN_DELETE_SELF|unix.IN_MOVE_SELF) != 0:
			n.over = true
		case isStatus(string(name)):
			n.files = append(n.files, string(name))
		}
	}
	return n
}
