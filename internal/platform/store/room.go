package store

import (
	"fmt"
	"strings"

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

// NoRoomElsewhere is returned where a majority of an embedded etcd's members would not bear a write: etcd ends where it
// can't write. Nothing was written.
type NoRoomElsewhere struct {
	// Members are those without room, with why; Away those that do not answer.
	Members, Away []string
}

func (n *NoRoomElsewhere) Error() string {
	away := ""
	if len(n.Away) > 0 {
		away = fmt.Sprintf(" (and %s cannot be asked)", strings.Join(n.Away, ", "))
	}
	return fmt.Sprintf("no change is taken, as the majority of the controllers has no room for it on disk: %s%s; a "+
		"change would end their etcd: make space there, and changes are taken again", strings.Join(n.Members, "; "),
		away)
}

// room says why nothing may be written for want of space on disks.
func (l *Limits) room() error {
	if l.dir == "" {
		return nil
	}
	if err := Room(l.dir); err != nil {
		return &Unavailable{Cause: err}
	}
	if why := l.held.Load(); why != nil {
		return &Unavailable{Cause: why}
	}
	return nil
}
