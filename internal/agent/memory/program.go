package memory

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// releasePages lets go of the pages of this program's file that are mapped: the kernel maps sixteen around each that is
// touched, and a start touches nearly all of them, while an agent at rest needs a twentieth. They stay in the machine's
// page cache, and what is needed again is mapped from there; what is not, the kernel can have without asking.
func releasePages() error {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return err
	}
	var errs []error
	for _, m := range untouched(smaps, self) {
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, m.at, m.size, unix.MADV_DONTNEED); errno != 0 {
			errs = append(errs, os.NewSyscallError("madvise", errno))
		}
	}
	return errors.Join(errs...)
}

// mapping is a part of this process's memory.
type mapping struct{ at, size uintptr }

// untouched are the mappings of a file that nobody can write to and nobody has: neither the linker, nor a debugger or a
// probe that has put an instruction of its own there. They are what the file says, so they can be read again.
func untouched(smaps []byte, file string) (list []mapping) {
	var now mapping
	lines := bufio.NewScanner(bytes.NewReader(smaps))
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		switch {
		case len(f) >= 5 && !strings.HasSuffix(f[0], ":"):
			now = mapping{}
			from, to, ok := strings.Cut(f[0], "-")
			at, err := strconv.ParseUint(from, 16, 64)
			end, err2 := strconv.ParseUint(to, 16, 64)
			good := ok && errors.Join(err, err2) == nil && len(f) == 6 && f[5] == file
			if good && (f[1] == "r-xp" || f[1] == "r--p") {
				now = mapping{uintptr(at), uintptr(end - at)}
			}
		case len(f) == 3 && f[0] == "Anonymous:" && f[1] == "0" && now.size > 0:
			list = append(list, now)
		}
	}
	return list
}
