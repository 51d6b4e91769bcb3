package host

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"heddle/internal/test/testkit"
)

// attached are the programs on the devices of the guests.
func attached(t *testing.T, h *host) (all []*ebpf.ProgramInfo) {
	t.Helper()
	err := h.ns.Do(func() error {
		for i := range 4 {
			dev, err := net.InterfaceByName(fmt.Sprintf("cap%d", i+1))
			if err != nil {
				return err
			}
			there, err := link.QueryPrograms(link.QueryOptions{Target: dev.Index, Attach: ebpf.AttachTCXIngress})
			if err != nil {
				return err
			}
			for _, p := range there.Programs {
				all = append(all, programInfo(t, p.ID))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// programInfo describes a program; nil when it has just gone.
func programInfo(t *testing.T, id ebpf.ProgramID) *ebpf.ProgramInfo {
	t.Helper()
	p, err := ebpf.NewProgramFromID(id)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	info, err := p.Info()
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// programNames are the names of the programs on the devices.
func programNames(t *testing.T, h *host) (names []string) {
	t.Helper()
	for _, info := range attached(t, h) {
		if info != nil {
			names = append(names, info.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// standIns counts the programs in the kernel that capture and work on this host's tables.
func standIns(t *testing.T, h *host) (n int) {
	t.Helper()
	tables, _ := attached(t, h)[0].MapIDs()
	for id, err := ebpf.ProgramGetNextID(0); err == nil; id, err = ebpf.ProgramGetNextID(id) {
		info := programInfo(t, id)
		if info == nil || !strings.HasPrefix(info.Name, "heddle_") {
			continue
		}
		ids, _ := info.MapIDs()
		if slices.ContainsFunc(ids, func(id ebpf.MapID) bool { return slices.Contains(tables, id) }) &&
			slices.ContainsFunc(ids, isScratch) {
			n++
		}
	}
	return n
}

// isScratch reports whether the map is one that only capturing programs have.
func isScratch(id ebpf.MapID) bool {
	m, err := ebpf.NewMapFromID(id)
	if err != nil {
		return false
	}
	defer m.Close()
	info, err := m.Info()
	return err == nil && info.Name == "capture_scratch"
}

func TestCaptureEndsWithItsClientAndWithTheAgent(t *testing.T) {
	testkit.Long(t, "ends captures in each way; TestCaptureIsWhatTcpdumpInTheGuestsSees has captures")
	testkit.Tool(t, "tcpdump")
	h, guests := captureHost(t)
	const live, asking = "heddle_ingress", "heddle_ingress_or"
	if got := programNames(t, h); !slices.Equal(got, []string{live}) {
		t.Fatalf("programs before: %v", got)
	}
	r := h.recordCapture("vm1/eth0")
	if got := programNames(t, h); !slices.Equal(got, []string{asking}) {
		t.Fatalf("programs while a capture runs: %v", got)
	}
	stream := startNumbered(t, guests["vm1/eth0"], guests["vm2/eth0"], "10.8.0.2")
	if err := r.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	h.await("the live program is back after the client's death", func() bool {
		return slices.Equal(programNames(t, h), []string{live})
	})
	h.recordCapture("vm2/eth0", "tcp", "port", "80")
	before := standIns(t, h)
	if before == 0 {
		t.Fatal("no program stands in while a capture runs")
	}
	h.kill(syscall.SIGKILL)
	h.await("no program stands in after the agent's death", func() bool { return standIns(t, h) == 0 })
	h.start()
	h.await("the live program is back", func() bool { return slices.Equal(programNames(t, h), []string{live}) })
	stream.finish()
}
