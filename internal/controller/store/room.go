package store

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// LeastFree is the space, in bytes, that no write takes from the file system of an embedded etcd. Etcd ends where it
// can't write; it prepares the next file of its log, of 64 MB, ahead.
const LeastFree = 80 << 20

// NoRoom is returned where the file system of an embedded etcd is as good as full. Nothing was written.
type NoRoom struct {
	Dir  string
	Free int64
}

func (n *NoRoom) Error() string {
	return fmt.Sprintf("the file system of %s has %d MiB left, and %d MiB are kept free for etcd, which ends where it "+
		"can't write: make space there, and changes are taken again", n.Dir, n.Free>>20, LeastFree>>20)
}

// Room says whether the file system with a directory has space for writes of an embedded etcd.
func Room(dir string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil || st.Blocks == 0 {
		return nil // not known: etcd will say it
	}
	if free := int64(st.Bavail) * st.Bsize; free < LeastFree {
		return &NoRoom{Dir: dir, Free: free}
	}
	return nil
}

// room is Room of a store; nil with an existing cluster.
func (o *Options) room() error {
	if o.Dir == "" {
		return nil
	}
	if err := Room(o.Dir); err != nil {
		return &Unavailable{Cause: err}
	}
	return nil
}
