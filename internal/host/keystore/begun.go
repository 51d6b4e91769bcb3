package keystore

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"heddle/internal/host/ownfile"
)

// Begin numbers a start of this machine's program: with more than all starts before, which is kept. The number is the
// milliseconds since 1970 where the clock allows that. A machine that was installed anew, or put back to an earlier
// state of its disk, has no number or an old one: its clock goes on, and one that was not set yet shows less than the
// beginning of the certificate, which is by the clock of those who issued it.
func (d *Dir) Begin(i *Identity, now time.Time) (uint64, error) {
	last, err := d.begun()
	if err != nil {
		return 0, err
	}
	next := max(last+1, millis(now), millis(i.Certificate.NotBefore))
	if err := d.disk.replace(d.file(begunFile), []byte(strconv.FormatUint(next, 10)+"\n")); err != nil {
		return 0, fmt.Errorf("keep the number of this start in %s: %w", d.file(begunFile), err)
	}
	return next, nil
}

// begun is the number of the start before, 0 for none. A file that is no number is one that a person has damaged, and
// counts as none.
func (d *Dir) begun() (uint64, error) {
	text, err := ownfile.Read(d.file(begunFile))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 63)
	if err != nil {
		return 0, nil
	}
	return n, nil
}

func millis(t time.Time) uint64 { return uint64(max(0, t.UnixMilli())) }
