package trace

import (
	"bytes"
	"encoding/hex"
	"heddle/internal/diagnose"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

const plainHex = "ffffffffffff020000000001080600010800060400010200000000010a000001" + "0000000000000a000002"

func TestHexIsReadAsPeopleHaveIt(t *testing.T) {
	for name, text := range map[string]string{
		"digits":     plainHex,
		"upper case": strings.ToUpper(plainHex),
		"blanks": "ff ff ff ff ff ff 02 00 00 00 00 01 08 06 00 01 08 00 06 04 00 01 02 00 00 00 00 01 0a 00 00 " +
			"01 00 00 00 00 00 00 0a 00 00 02\n",
		"colons": "ff:ff:ff:ff:ff:ff 02:00:00:00:00:01 0806 " + plainHex[28:],
		"0x":     "0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02, " + plainHex[14:],
		"tcpdump -xx": "\t0x0000:  ffff ffff ffff 0200 0000 0001 0806 0001\n\t0x0010:  0800 0604 0001 0200 0000 0001 " +
			"0a00 0001\n" +
			"\t0x0020:  0000 0000 0000 0a00 0002\n",
		"tcpdump -xx with its words": "ARP, Request who-has 10.0.0.2 tell 10.0.0.1, length 28\n\t0x0000:  ffff ffff " +
			"ffff 0200 0000 0001 0806 0001\n\t0x0010:  0800 0604 0001 0200 0000 0001 0a00 0001\n" +
			"\t0x0020:  0000 0000 0000 0a00 0002\n",
		"tcpdump -XX": "\t0x0000:  ffff ffff ffff 0200 0000 0001 0806 0001  ................\n\t0x0010:  0800 0604 " +
			"0001 0200 0000 0001 0a00 0001  ..........:cafe.\n" +
			"\t0x0020:  0000 0000 0000 0a00 0002                 ..........\n",
		"xxd": "00000000: ffff ffff ffff 0200 0000 0001 0806 0001  ................\n00000010: 0800 0604 0001 0200 " +
			"0000 0001 0a00 0001  ................\n" +
			"00000020: 0000 0000 0000 0a00 0002                 ..........\n",
		"hexdump -C": "00000000  ff ff ff ff ff ff 02 00  00 00 00 01 08 06 00 01  |................|\n00000010  08 " +
			"00 06 04 00 01 02 00  00 00 00 01 0a 00 00 01  |................|\n" +
			"00000020  00 00 00 00 00 00 0a 00  00 02                    |..........|\n0000002a\n",
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseHex(text)
			if err != nil || hex.EncodeToString(got) != plainHex {
				t.Errorf("%s: %x, %v", name, got, err)
			}
		})
	}
}

func TestHexThatIsNoFrameIsRefusedWithItsPlace(t *testing.T) {
	for text, want := range map[string]string{
		"":     "there is no frame in it",
		" \n ": "there is no frame in it",
		"fff":  "line 1: 3 digits: a byte is two",
		"words\n\t0x0000:  ffff\n\t0x0000:  0101":  "line 3: a second frame begins: give one",
		"\t0x0000:  ffff\n\t0x0010:  0101":         `line 2: "0x0010:" is not the offset 0x0002 that comes next`,
		"ffff\n12zz":                               `line 2: "z" is not a hexadecimal digit`,
		"12é4":                                     `line 1: "é" is not a hexadecimal digit`,
		strings.Repeat("00", diagnose.MaxLength+1): "line 1: the frame is longer than 9200 bytes",
	} {
		if got, err := ParseHex(text); err == nil || err.Error() != want {
			t.Errorf("%.20q: %x, %v, want %s", text, got, err, want)
		}
	}
}

func FuzzHex(f *testing.F) {
	f.Add(plainHex)
	f.Add("\t0x0000:  ffff ffff ffff 0200 0000 0001 0806 0001  ................\n")
	f.Add("00000000  ff ff ff ff ff ff 02 00  00 00 00 01 08 06 00 01  |................|\n00000010\n")
	f.Fuzz(func(t *testing.T, text string) {
		b, err := ParseHex(text)
		if err != nil {
			if b != nil {
				t.Fatalf("%x with %v", b, err)
			}
			return
		}
		if len(b) == 0 || len(b) > diagnose.MaxLength {
			t.Fatalf("%d bytes", len(b))
		}
		again, err := ParseHex(hex.EncodeToString(b))
		if err != nil || !bytes.Equal(again, b) {
			t.Fatalf("%x came back as %x, %v", b, again, err)
		}
		_ = Describe(b)
	})
}

// captureFile returns a capture in the form of another program, with at most 40 bytes of each frame.
func captureFile(t testing.TB, ng bool, link layers.LinkType, frames ...[]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	flush := func() error { return nil }
	var write func(gopacket.CaptureInfo, []byte) error
	if ng {
		w, err := pcapgo.NewNgWriter(&b, link)
		if err != nil {
			t.Fatal(err)
		}
		write, flush = w.WritePacket, w.Flush
	} else {
		w := pcapgo.NewWriter(&b)
		if err := w.WriteFileHeader(65536, link); err != nil {
			t.Fatal(err)
		}
		write = w.WritePacket
	}
	for _, f := range frames {
		ci := gopacket.CaptureInfo{CaptureLength: min(40, len(f)), Length: len(f)}
		if err := write(ci, f[:ci.CaptureLength]); err != nil {
			t.Fatal(err)
		}
	}
	if err := flush(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestCapturesAreReadWholeAndInOrder(t *testing.T) {
	short, long := bytes.Repeat([]byte{1}, 20), bytes.Repeat([]byte{2}, 60)
	for _, ng := range []bool{false, true} {
		got, err := ReadCapture(bytes.NewReader(captureFile(t, ng, layers.LinkTypeEthernet, short, long, short)))
		if err != nil {
			t.Fatal(err)
		}
		want := append(bytes.Repeat([]byte{2}, 40), make([]byte, 20)...) // the file has 40 bytes of the frame
		if len(got.Frames) != 3 || !bytes.Equal(got.Frames[0], short) || !bytes.Equal(got.Frames[1], want) ||
			!bytes.Equal(got.Frames[2], short) {
			t.Errorf("ng %v: %x", ng, got.Frames)
		}
		if len(got.Cut) != 1 || got.Cut[0] != 2 || got.More {
			t.Errorf("ng %v: cut %v, more %v", ng, got.Cut, got.More)
		}
	}
}

func TestACaptureOfTheOtherByteOrderIsRead(t *testing.T) {
	file := []byte{0xa1, 0xb2, 0xc3, 0xd4, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 1, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 3, 7, 8}
	got, err := ReadCapture(bytes.NewReader(file))
	if err != nil || len(got.Frames) != 1 || !bytes.Equal(got.Frames[0], []byte{7, 8, 0}) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestDamagedCapturesAreRefusedWithTheirPlace(t *testing.T) {
	good := captureFile(t, false, layers.LinkTypeEthernet, make([]byte, 20))
	ng := captureFile(t, true, layers.LinkTypeEthernet, make([]byte, 20))
	huge := bytes.Clone(good)
	huge[24+10] = 0x7f
	twice := bytes.Clone(ng)
	twice[len(twice)-4]++
	for name, x := range map[string]struct {
		file []byte
		want string
	}{
		"nothing":    {nil, "not a capture file: it has less than 4 bytes"},
		"text":       {[]byte("hello world"), "not a pcap or pcapng file: it begins with 68656c6c"},
		"no frame":   {good[:24], "there is no frame in the file"},
		"cut header": {good[:30], "at byte 30: the file ends within a frame's header"},
		"cut frame":  {good[:50], "at byte 50: the file ends within a frame"},
		"huge frame": {huge, "at byte 40: a frame of 8323092 bytes: the file is damaged"},
		"other link": {captureFile(t, false, layers.LinkTypeLinuxSLL, make([]byte, 20)),
			"link type is 113 and not Ethernet"},
		"other link, ng": {captureFile(t, true, layers.LinkTypeLinuxSLL, make([]byte, 20)),
			"link type is 113 and not Ethernet"},
		"cut block":      {ng[:len(ng)-6], "the file ends within a block"},
		"lengths differ": {twice, "a block is"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ReadCapture(bytes.NewReader(x.file))
			if err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("%s: %+v, %v, want %s", name, got, err, x.want)
			}
		})
	}
}

func TestACaptureHasABound(t *testing.T) {
	frames := make([][]byte, diagnose.MaxFrames+1)
	for i := range frames {
		frames[i] = make([]byte, 14)
	}
	got, err := ReadCapture(bytes.NewReader(captureFile(t, false, layers.LinkTypeEthernet, frames...)))
	if err != nil || len(got.Frames) != diagnose.MaxFrames || !got.More {
		t.Errorf("%v", err)
	}
}

func FuzzCapture(f *testing.F) {
	for _, ng := range []bool{false, true} {
		f.Add(captureFile(f, ng, layers.LinkTypeEthernet, make([]byte, 20), bytes.Repeat([]byte{3}, 60)))
	}
	f.Add(captureFile(f, true, layers.LinkTypeLinuxSLL, make([]byte, 20)))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := ReadCapture(bytes.NewReader(b))
		if err != nil {
			if c != nil {
				t.Fatalf("%v with %v", c, err)
			}
			return
		}
		if len(c.Frames) == 0 || len(c.Frames) > diagnose.MaxFrames {
			t.Fatalf("%d frames", len(c.Frames))
		}
		for _, frame := range c.Frames {
			if len(frame) > diagnose.MaxLength {
				t.Fatalf("a frame of %d bytes", len(frame))
			}
			_ = Describe(frame)
		}
	})
}

// Whatever the bytes are, a trace of them ends, is consistent and gives a reason if nobody gets a copy.
func FuzzTrace(f *testing.F) {
	h := host(f, config("uplinks: [{name: u1, device: p1, vlans: [\"0-100\"]}]",
		"{name: web, vlan: {access: 10}}\n{name: nest, vlan: {trunk: [\"0-4094\"]}, security: {forgedTransmits: "+
			"accept, macLearning: {enabled: true}}}", "vm1 web", "vm2 nest", "vm3 web"))
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\x02\x00\x00\x00\x00\x01\x08\x06"), uint8(0))
	f.Add([]byte("\x02\x00\x00\x00\x00\x03\x02\x00\x00\x00\x00\x02\x81\x00\x00\x0a\x08\x00\x45\x00"), uint8(1))
	f.Add([]byte("\x02\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x09\x88\xa8\x00\x0a\x81\x00\x00\x0a\x86\xdd"), uint8(2))
	f.Fuzz(func(t *testing.T, b []byte, from uint8) {
		if len(b) > diagnose.MaxLength {
			return
		}
		r := run(t, h, diagnose.Request{From: []string{"vm1", "vm2", "u1"}[int(from)%3], To: "vm3",
			Frames: [][]byte{b}})
		x := r.Frames[0]
		if x.Delivered != (len(x.Copies) > 0) || x.Delivered != (x.Reason == "") || !x.Delivered && len(x.Causes) == 0 {
			t.Fatalf("%+v", x)
		}
		for _, c := range x.Causes {
			if c.Why == "" || c.Change == "" || c.Command == "" || c.Policy == "" || c.From == "" {
				t.Fatalf("%+v", c)
			}
		}
	})
}

// Every test run reads the corpora in the repository; this test checks that they exist.
func TestTheFuzzTargetsHaveCorpora(t *testing.T) {
	for _, target := range []string{"FuzzHex", "FuzzCapture", "FuzzTrace"} {
		files, err := os.ReadDir(filepath.Join("testdata", "fuzz", target))
		if err != nil || len(files) < 3 {
			t.Errorf("%s: %d files, %v", target, len(files), err)
		}
	}
}
