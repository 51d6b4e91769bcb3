package instance

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// takePins makes the directory of pinned objects and takes it for this process. Who could change what is in it could
// change the switch, and two agents in one directory take each other's attachments: it is no link, belongs to root
// alone, and one process has it, by whatever name.
func (l *Lock) takePins(dir string) error {
	if l.pins != nil && sameFile(l.pins, dir) {
		return nil
	}
	if err := checkAbove(filepath.Dir(dir)); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) {
		return fmt.Errorf("%s is no directory but a link or another file: remove it", dir)
	}
	if err != nil {
		return err
	}
	fi, err := f.Stat()
	if err == nil {
		err = ownerOf(dir, fi)
	}
	if err == nil && fi.Mode().Perm() != 0o700 {
		err = f.Chmod(0o700)
	}
	if err == nil {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = fmt.Errorf("%w: another agent has its pinned objects in %s; stop it first", ErrRunning, dir)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	if l.pins != nil {
		l.pins.Close()
	}
	l.pins = f
	return nil
}

// checkAbove refuses a file system in which others could put another directory in the place of the agent's.
func checkAbove(dir string) error {
	fi, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if err := ownerOf(dir, fi); err != nil {
		return err
	}
	if fi.Mode().Perm()&0o022 != 0 && fi.Mode()&fs.ModeSticky == 0 {
		return fmt.Errorf("other users may write into %s (its mode is %04o): take that from them (chmod 0700 %s)", dir,
			fi.Mode().Perm(), dir)
	}
	return nil
}

// ownerOf refuses what belongs neither to root nor to this process's user.
func ownerOf(path string, fi fs.FileInfo) error {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok || st.Uid == 0 || int64(st.Uid) == int64(os.Geteuid()) {
		return nil
	}
	return fmt.Errorf("%s belongs to the user with id %d, who made it or was given it: remove it if no agent runs by "+
		"it, and mount the file system for root alone (mount -t bpf -o mode=0700)", path, st.Uid)
}
