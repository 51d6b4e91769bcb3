package tree

import (
	"encoding/binary"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/diagnose"
)

// tcpSegments returns a TCP packet with that many bytes whose sender left segmentation to the device.
func tcpSegments(payload int) []byte {
	b := append(framed(0x08, 0x00), make([]byte, 40+payload)...)
	b[14], b[23], b[46] = 0x45, 6, 0x50
	binary.BigEndian.PutUint16(b[16:], uint16(40+payload))
	return b
}

// framed returns the header of a frame from vm1 to vm2.
func framed(kind ...byte) []byte { return append([]byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1}, kind...) }

// conversation returns what "heddle capture" records at vm1, vm2 and an uplink: requests of vm1, an answer that vm2
// sends and vm1 receives, a frame that is dropped and one from outside.
func conversation() []api.CaptureEvent {
	request, reply := append(framed(0x88, 0xb5), make([]byte, 46)...), slices.Concat([]byte{2, 0, 0, 0, 0, 1, 2, 0, 0,
		0,
		0, 2, 0x88, 0xb5}, make([]byte, 46))
	forged, outside := slices.Clone(request), slices.Clone(request)
	forged[11], outside[11] = 0x77, 0xee
	big := tcpSegments(20000)
	at := func(f api.CaptureFrame, b []byte) api.CaptureEvent {
		f.Length, f.Data = uint32(len(b)), b
		return api.CaptureEvent{Frame: &f}
	}
	return []api.CaptureEvent{
		{Started: &api.CaptureStarted{ID: 3}},
		{Port: &api.CapturePort{Number: 1, Switch: "lab", Name: "vm1/eth0"}},
		{Port: &api.CapturePort{Number: 2, Switch: "lab", Name: "vm2/eth0"}},
		{Port: &api.CapturePort{Number: 5, Switch: "lab", Name: "uplink1", Uplink: true}},
		at(api.CaptureFrame{Port: 1, Stage: api.StageAdmit}, request),                          // 1
		at(api.CaptureFrame{Port: 2, Other: 1, Stage: api.StageDeliver, Copy: true}, request),  // 2
		at(api.CaptureFrame{Port: 2, Stage: api.StageAdmit}, reply),                            // 3
		at(api.CaptureFrame{Port: 1, Other: 2, Stage: api.StageDeliver, Copy: true}, reply),    // 4
		at(api.CaptureFrame{Port: 1, Stage: api.StageAdmit}, forged),                           // 5
		at(api.CaptureFrame{Port: 1, Stage: api.StageDrop, Reason: "forged-transmit"}, forged), // 6
		at(api.CaptureFrame{Port: 1, Stage: api.StageAdmit, SegmentSize: 1448}, big),           // 7
		at(api.CaptureFrame{Port: 5, Stage: api.StageAdmit}, outside),                          // 8
		at(api.CaptureFrame{Port: 5, Stage: api.StageAdmit, FromHost: true}, request),          // 9
		{Counts: &api.CaptureCounts{Selected: 9, Ended: api.CaptureAsked}},
	}
}

// captured writes a file with our own capture.
func captured(t *testing.T, events []api.CaptureEvent) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.pcapng")
	s := &standIn{captured: events}
	if _, errs, status := newConsole(t, s).run("capture", "any", "-w", path); status != cli.ExitOK {
		t.Fatal(errs)
	}
	return path
}

// TestATraceOfOurOwnCaptureTakesWhatEntered: of both directions, only frames that entered the switch are sent, once,
// from the port by which they entered.
func TestATraceOfOurOwnCaptureTakesWhatEntered(t *testing.T) {
	events := conversation()
	path := captured(t, events)
	data := func(i int) []byte { return events[i+3].Frame.Data }
	first := slices.Clone(data(7)[:14+40+1448])
	binary.BigEndian.PutUint16(first[16:], 40+1448)
	for name, x := range map[string]struct {
		args []string
		want diagnose.Request
		note string
	}{
		"vm1": {[]string{"vm1/eth0"}, diagnose.Request{From: "vm1/eth0",
			Frames: [][]byte{data(1), data(5), first}}, "2 frames of the file entered elsewhere and are left out"},
		"vm1 to vm2": {[]string{"vm1/eth0", "vm2/eth0"}, diagnose.Request{From: "vm1/eth0", To: "vm2/eth0",
			Frames: [][]byte{data(1), data(5), first}}, "1 frame of the file stands for several"},
		"vm2": {[]string{"vm2/eth0"}, diagnose.Request{From: "vm2/eth0", Frames: [][]byte{data(3)}},
			"3 frames of the file left the switch, or came from the host itself"},
		"uplink": {[]string{"lab/uplink1"}, diagnose.Request{From: "lab/uplink1", Frames: [][]byte{data(8)}}, ""},
		"packet": {[]string{"vm1/eth0", "--packet", "5"}, diagnose.Request{From: "vm1/eth0", Packet: 2,
			Frames: [][]byte{data(1), data(5), first}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := &standIn{trace: diagnose.Report{Agree: true, Frames: []diagnose.Frame{{Number: 2, Summary: "a → b"},
				{Number: 3, Summary: "a → c"}}}}
			out, errs, status := newConsole(t, s).run(append([]string{"trace", "--pcap", path}, x.args...)...)
			if status != cli.ExitOK {
				t.Fatal(errs)
			}
			if d := cmp.Diff([]any{x.want}, s.asked); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
			if x.note != "" && !strings.Contains(out, x.note) {
				t.Errorf("%q is missing in\n%s", x.note, out)
			}
			if name == "vm1" && (!strings.Contains(out, "\n     5 ") || !strings.Contains(out, "\n     7 ")) {
				t.Errorf("the frames do not have the numbers of the file:\n%s", out)
			}
		})
	}
}

func TestATraceOfOurOwnCaptureNamesThePortsItHas(t *testing.T) {
	events := conversation()
	path := captured(t, events)
	one := captured(t, slices.Concat(events[:2], events[4:5], events[7:8], events[len(events)-1:]))
	left := captured(t, slices.Concat(events[:2], events[7:8], events[len(events)-1:]))
	dropped := captured(t, slices.Concat(events[:2], events[9:10], events[len(events)-1:]))
	s := &standIn{trace: diagnose.Report{Agree: true}}
	c := newConsole(t, s)
	for _, x := range []struct {
		name string
		args []string
		want string
	}{
		{"several ports", []string{"--pcap", path},
			"its frames entered by lab/uplink1, vm1/eth0, vm2/eth0: give one of them as the first argument"},
		{"another port", []string{"vm9/eth0", "--pcap", path}, "give one of them as the first argument"},
		{"a number that left", []string{"vm1/eth0", "--pcap", path, "--packet", "4"},
			"--packet 4: the file has no such frame that entered the switch there; one that it has is 7"},
		{"nothing entered", []string{"--pcap", left},
			"no frame in the file entered the switch: those captured were on their way out of it"},
	} {
		t.Run(x.name, func(t *testing.T) {
			if _, errs, status := c.run(append([]string{"trace"}, x.args...)...); status != cli.ExitUsage ||
				!strings.Contains(errs, x.want) {
				t.Errorf("status %d, %s, want %s", status, errs, x.want)
			}
		})
	}
	for name, file := range map[string]string{"the only port is taken": one, "drops alone": dropped} {
		t.Run(name, func(t *testing.T) {
			s.asked = nil
			if _, errs, status := c.run("trace", "--pcap", file); status != cli.ExitOK {
				t.Fatal(errs)
			}
			if q := s.asked[0].(diagnose.Request); q.From != "vm1/eth0" || len(q.Frames) != 1 {
				t.Errorf("asked %+v", q)
			}
		})
	}
}
