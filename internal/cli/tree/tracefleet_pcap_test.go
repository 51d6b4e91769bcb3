package tree

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heddle/internal/capture/pcapng"
	"heddle/internal/diagnose"
)

// fleetFile is a capture on several hosts: frames 1 and 3 entered at esx1, 2 at esx2, 4 left there, 5 came by an
// uplink.
func fleetFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "all.pcapng")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w, err := pcapng.NewWriter(file, pcapng.Section{Application: "heddle capture", OS: "Linux"})
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range []pcapng.Interface{{Name: "esx1:vm/eth0", Description: "port of switch dvs on host esx1"},
		{Name: "esx2:vm/eth0", Description: "port of switch dvs on host esx2"},
		{Name: "esx2:uplink1", Description: "uplink of switch dvs on host esx2"}} {
		if _, err := w.Add(i); err != nil {
			t.Fatal(err)
		}
	}
	for n, p := range []struct {
		at  int
		way pcapng.Direction
	}{{0, pcapng.Inbound}, {1, pcapng.Inbound}, {0, pcapng.Inbound}, {1, pcapng.Outbound}, {2, pcapng.Inbound}} {
		if err := w.Packet(pcapng.Packet{Interface: p.at, Time: time.Unix(int64(n), 0), Direction: p.way,
			Comment: "port vm/eth0, in, admit", Length: 60, Data: make([]byte, 60)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// Frames of a capture on several hosts are traced each on its host, from the port by which it entered, and shown in the
// order of the file.
func TestTracePcap_OfAllHosts(t *testing.T) {
	path := fleetFile(t)
	f := threeShown(t)
	for _, name := range []string{"esx1", "esx2"} {
		f.hosts[name].trace = diagnose.Report{Agree: true, Frames: []diagnose.Frame{{Number: 1, Summary: "of " + name,
			Delivered: true}}}
	}
	f.hosts["esx1"].trace.Frames = append(f.hosts["esx1"].trace.Frames, diagnose.Frame{Number: 2, Reason: "blocked"})
	out, errs, status := f.run("trace", "--pcap", path)
	for _, want := range []string{
		"PACKET  HOST  FROM         BYTES  OUTCOME    TO  FRAME\n",
		"     1  esx1  vm/eth0          0  delivered  -   of esx1\n     2  esx2  vm/eth0          0  delivered",
		"     3  esx1  vm/eth0          0  blocked", "     5  esx2  dvs/uplink1 ",
		"note: 1 frame of the file left the switch",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	if status != 1 || errs != awaySays {
		t.Errorf("status %d: %s", status, errs)
	}
	var asked []string
	for _, name := range []string{"esx1", "esx2"} {
		for _, q := range f.hosts[name].asked {
			if q, ok := q.(diagnose.Request); ok {
				asked = append(asked, name+" "+q.From+strings.Repeat(" frame", len(q.Frames)))
			}
		}
	}
	if got := strings.Join(asked, ", "); got != "esx1 vm/eth0 frame frame, esx2 vm/eth0 frame, esx2 dvs/uplink1 frame" {
		t.Errorf("asked is %s", got)
	}
	out, errs, _ = f.run("trace", "--pcap", path, "--packet", "3")
	if !strings.Contains(out, "note: on host esx1") {
		t.Errorf("one frame: %s%s", out, errs)
	}
	if out, errs, status := f.run("trace", "--pcap", path, "--packet", "4"); status != 1 ||
		!strings.Contains(errs, "no such frame") {
		t.Errorf("a frame that left: %d %s%s", status, out, errs)
	}
	f.says(2, "", "heddle: with --pcap the file says where each frame goes: leave out TO, or name one host with "+
		"--host\n",
		"trace", "--pcap", path, "--to", "vm")
}
