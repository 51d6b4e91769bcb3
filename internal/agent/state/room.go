package state

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// spare is what has to be free beside another copy of the state, in bytes: a change writes other files, too.
const spare = 64 << 10

// Fault says why a change could not be kept in the state directory as it is, "" where it could: a host whose disk is
// full goes on, and nobody sees it before a change is refused.
func Fault(dir string) string {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fmt.Sprintf("the state directory %s can't be looked at: %v", dir, err)
	}
	var size int64 // of a copy
	if f, err := os.Stat(filepath.Join(dir, "state.json")); err == nil {
		size = f.Size()
	}
	return faultOf(dir, &st, size)
}

func faultOf(dir string, st *unix.Statfs_t, size int64) string {
	switch free := int64(st.Bavail) * st.Bsize; {
	case st.Flags&unix.ST_RDONLY != 0:
		return fmt.Sprintf("the file system of the state directory %s is read-only", dir)
	case free < size+spare:
		return fmt.Sprintf("the file system of the state directory %s is full: %d KiB are left, and a change needs %d",
			dir, free>>10, (size+spare)>>10)
	case st.Files > 0 && st.Ffree == 0:
		return fmt.Sprintf("the file system of the state directory %s can have no more files", dir)
	}
	return ""
}
