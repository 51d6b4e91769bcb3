package clockshift

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"heddle/internal/lab/netns"
	"heddle/internal/test/testkit"
)

// Clock is one that may be off, by whole seconds.
type Clock struct {
	mu  sync.Mutex
	off int64
	// pid is the program that has it now, at is where it has how far it is off.
	pid int
	at  int64
}

// Showing is a clock that shows that time now.
func Showing(now time.Time) *Clock { return &Clock{off: offOf(now)} }

func offOf(now time.Time) int64 { return int64(time.Until(now).Round(time.Second) / time.Second) }

// Set sets the clock of the program that runs with it, as root does with date.
func (c *Clock) Set(t *testing.T, now time.Time) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.off = offOf(now)
	if err := write(c.pid, c.at, binary.NativeEndian.AppendUint64(nil, uint64(c.off))); err != nil {
		t.Fatal(err)
	}
}

// Start starts a program in a namespace with that clock. What measures how long something takes is not shifted, nor is
// the clock of programs that it starts.
func Start(t *testing.T, ns *netns.NS, cmd *exec.Cmd, clock *Clock) error {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		testkit.Missing(t, "a machine of x86-64, for a clock that is off")
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	return ns.Do(func() error { // which is on one thread: the program's tracer
		if err := cmd.Start(); err != nil {
			return err
		}
		pid := cmd.Process.Pid
		var status syscall.WaitStatus
		if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil || !status.Stopped() {
			return fmt.Errorf("the program does not stop at its beginning: %v, %w", status, err)
		}
		clock.mu.Lock()
		defer clock.mu.Unlock()
		return errors.Join(clock.give(pid), syscall.PtraceDetach(pid))
	})
}

// instructions are those of clock_gettime(edi = which clock, rsi = where to), up to the number that is added.
var instructions = []byte{
	0xb8, 0xe4, 0, 0, 0, // mov eax, SYS_clock_gettime
	0x0f, 0x05, // syscall
	0x85, 0xc0, // test eax, eax
	0x75, 0x0e, // jnz to ret
	0x85, 0xff, // test edi, edi: CLOCK_REALTIME
	0x75, 0x0a, // jnz to ret
	0x48, 0x8b, 0x0d, 0x04, 0, 0, 0, // mov rcx, [the number]
	0x48, 0x01, 0x0e, // add [rsi], rcx: the seconds
	0xc3, // ret
}

// give gives a program that has just begun, and waits for its tracer, this clock.
func (c *Clock) give(pid int) error {
	at, size, err := clockFunction(pid)
	if err != nil {
		return err
	}
	text := binary.NativeEndian.AppendUint64(bytes.Clone(instructions), uint64(c.off))
	if uint64(len(text)) > size {
		return fmt.Errorf("the kernel's function has %d bytes, and %d are needed", size, len(text))
	}
	c.pid, c.at = pid, at+int64(len(instructions))
	return write(pid, at, text)
}

func write(pid int, at int64, text []byte) error {
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	_, err = memory.WriteAt(text, at)
	return errors.Join(err, memory.Close())
}

// clockFunction is where a program finds the function that reads the clock.
func clockFunction(pid int) (at int64, size uint64, err error) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return 0, 0, err
	}
	var from, to int64
	for line := range strings.Lines(string(maps)) {
		if strings.HasSuffix(strings.TrimSpace(line), "[vdso]") {
			_, err = fmt.Sscanf(line, "%x-%x", &from, &to)
		}
	}
	if err != nil || from == 0 {
		return 0, 0, fmt.Errorf("the kernel gives programs no page for the clock: %w", err)
	}
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return 0, 0, err
	}
	defer memory.Close()
	image := make([]byte, to-from)
	if _, err := memory.ReadAt(image, from); err != nil {
		return 0, 0, err
	}
	file, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return 0, 0, err
	}
	symbols, err := file.DynamicSymbols()
	for _, s := range symbols {
		if s.Name == "__vdso_clock_gettime" {
			return from + int64(s.Value), s.Size, nil
		}
	}
	return 0, 0, fmt.Errorf("the kernel's page has no function that reads the clock: %w", err)
}
