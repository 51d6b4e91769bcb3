package realhost

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"heddle/internal/host/ownfile"
	"heddle/internal/test/testkit"
)

// Reboot makes it so for the agent as if the host had been switched off: the agent is killed, its pins and everything
// under its run directory are gone, and the boot is another one. The devices are the caller's; Start starts the agent.
func (h *Host) Reboot() {
	h.T.Helper()
	h.End(syscall.SIGKILL)
	ForgetBoot(h.T, h.Dir, "default")
}

// ForgetBoot makes the directories of an agent that has ended look as after a reboot: dir has its run and its state
// directory.
func ForgetBoot(t *testing.T, dir, agent string) {
	t.Helper()
	mount := filepath.Join(dir, "run", "bpf")
	err := os.RemoveAll(filepath.Join(mount, agent))
	testkit.Unmount(t, mount)
	err = errors.Join(err, os.RemoveAll(filepath.Join(dir, "run")))
	path := filepath.Join(dir, "state", agent, "state.json")
	b, errRead := os.ReadFile(path)
	boot, errBoot := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err := errors.Join(err, errRead, errBoot); err != nil {
		t.Fatal(err)
	}
	b = b[:bytes.LastIndexByte(b, ',')] // without the checksum, which is the last field
	text := strings.Replace(string(b), strings.TrimSpace(string(boot)), "00000000-0000-4000-8000-000000000000", 1)
	if text == string(b) {
		t.Fatal("the state does not name the boot: this test is void")
	}
	if err := os.WriteFile(path, ownfile.Seal([]byte(text)), 0o600); err != nil {
		t.Fatal(err)
	}
}
