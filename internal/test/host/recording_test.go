package host

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket/pcapgo"

	"heddle/internal/lab/netns"
)

// recording is a program that records packets into a file until it is ended.
type recording struct {
	t    *testing.T
	cmd  *exec.Cmd
	out  *bytes.Buffer
	file string
	said chan struct{} // closed when out has all that the program said
}

// record starts a program and waits for the word by which it says that it records.
func record(t *testing.T, ns *netns.NS, cmd *exec.Cmd, file, ready string) *recording {
	t.Helper()
	r := &recording{t: t, cmd: cmd, out: &bytes.Buffer{}, file: file}
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := ns.Start(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // an error where it was killed, or has ended before
	})
	in := bufio.NewReader(errs)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatalf("%s ended before it recorded: %s%v", cmd.Path, line, err)
		}
		if strings.Contains(line, ready) {
			break
		}
	}
	r.said = make(chan struct{})
	go func() {
		defer close(r.said)
		_, _ = io.Copy(r.out, in)
	}()
	return r
}

// end ends the recording in order and gives what the program says at its end.
func (r *recording) end() string {
	r.t.Helper()
	if err := r.cmd.Process.Signal(os.Interrupt); err != nil {
		r.t.Fatal(err)
	}
	<-r.said // all of it, which the end of waiting would cut off
	if err := r.cmd.Wait(); err != nil {
		r.t.Fatalf("%s: %v: %s", r.cmd.Path, err, r.out)
	}
	return r.out.String()
}

func (h *host) recordCapture(args ...string) *recording {
	h.t.Helper()
	file := filepath.Join(h.dir, fmt.Sprintf("capture%d.pcapng", time.Now().UnixNano()))
	return record(h.t, h.ns, h.command(append([]string{"capture", "-w", file}, args...)...), file, "capturing")
}

// tcpdump records what passes a device.
func tcpdump(t *testing.T, ns *netns.NS, device string) *recording {
	t.Helper()
	file := filepath.Join(t.TempDir(), "guest.pcap")
	return record(t, ns, exec.Command("tcpdump", "-i", device, "-w", file, "-U", "--immediate-mode", "-B", "32768",
		"-s", "0", "-Z", "root"), file, "listening on")
}

// packets are the frames of a classic capture file, in order, as text.
func (r *recording) packets() []string {
	r.t.Helper()
	frames, err := r.read()
	if err != nil {
		r.t.Fatal(err)
	}
	return frames
}

// has reports whether the file that is being written has frames that begin so.
func (r *recording) has(begin []string) bool {
	frames, err := r.read()
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		// its head or last frame may be half there
		r.t.Fatal(err)
	}
	return !slices.ContainsFunc(begin, func(b string) bool {
		return !slices.ContainsFunc(frames, func(f string) bool { return strings.HasPrefix(f, b) })
	})
}

// read reads a classic capture file, as far as it goes.
func (r *recording) read() (frames []string, err error) {
	f, err := os.Open(r.file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p, err := pcapgo.NewReader(f)
	if err != nil {
		return nil, err
	}
	for {
		data, _, err := p.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return frames, nil
		}
		if err != nil {
			return frames, err
		}
		frames = append(frames, fmt.Sprintf("%x", data))
	}
}

// byInterface are the frames of a pcapng file by the name of their interface.
func (r *recording) byInterface() map[string][]string {
	r.t.Helper()
	f, err := os.Open(r.file)
	if err != nil {
		r.t.Fatal(err)
	}
	defer f.Close()
	p, err := pcapgo.NewNgReader(f, pcapgo.DefaultNgReaderOptions)
	if err != nil {
		r.t.Fatal(err)
	}
	frames := map[string][]string{}
	for {
		data, info, err := p.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return frames
		}
		if err != nil {
			r.t.Fatal(err)
		}
		i, err := p.Interface(info.InterfaceIndex)
		if err != nil {
			r.t.Fatal(err)
		}
		frames[i.Name] = append(frames[i.Name], fmt.Sprintf("%x", data))
	}
}
