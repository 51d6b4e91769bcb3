package problem

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// codes returns the constants of this package, read from its source: a new one can't be left out of the tests.
func codes(t *testing.T) (all []Code) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "problem.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if id, ok := spec.Type.(*ast.Ident); !ok || id.Name != "Code" {
			return true
		}
		for _, v := range spec.Values {
			s, err := strconv.Unquote(v.(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, Code(s))
		}
		return true
	})
	if len(all) < 50 {
		t.Fatalf("%d codes are found", len(all))
	}
	return all
}

func full(c Code) Problem {
	return Problem{Code: c, Device: "DEVICE", Peer: "PEER", Other: "OTHER", Kind: "KIND", MAC: "02:00:00:00:00:01",
		Have: 1400, Want: 1500,
		For: 42 * time.Second, Since: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Detail: "DETAIL of " + string(c)}
}

func TestEveryCodeHasATextOfItsOwn(t *testing.T) {
	for _, of := range []struct {
		what string
		make func(Code) Problem
	}{{"alone", Of}, {"with all that belongs to it", full}} {
		t.Run(of.what, func(t *testing.T) {
			texts := map[string]Code{}
			for _, c := range codes(t) {
				text := of.make(c).Text()
				if !strings.Contains(text, " ") || text == string(c) {
					t.Errorf("%s %s: the text %q is no sentence", c, of.what, text)
				}
				if strings.Contains(text, "%!") || strings.HasSuffix(text, ": ") {
					t.Errorf("%s %s: %q", c, of.what, text)
				}
				if other, twice := texts[text]; twice {
					t.Errorf("%s and %s %s have one text, %q", c, other, of.what, text)
				}
				texts[text] = c
			}
		})
	}
	if (Problem{}).Text() != "" || Of("of-a-newer-agent").Text() != "of-a-newer-agent" {
		t.Error("no state has a text, or a code that is not known has none")
	}
}

func TestWordsMakeNoState(t *testing.T) {
	for _, c := range codes(t) {
		a, b := full(c), full(c)
		b.Detail = "other words"
		b.Since = b.Since.In(time.FixedZone("elsewhere", 3600))
		if !a.Same(b) {
			t.Errorf("%s: other words make another state", c)
		}
	}
	base := full(LowMTU)
	for what, edit := range map[string]func(*Problem){
		"code": func(p *Problem) { p.Code = NoDevice }, "device": func(p *Problem) { p.Device = "x" },
		"peer":  func(p *Problem) { p.Peer = "x" },
		"other": func(p *Problem) { p.Other = "x" }, "kind": func(p *Problem) { p.Kind = "x" },
		"mac":  func(p *Problem) { p.MAC = "x" },
		"have": func(p *Problem) { p.Have++ }, "want": func(p *Problem) { p.Want++ }, "for": func(p *Problem) {
			p.For++
		},
		"since": func(p *Problem) { p.Since = p.Since.Add(1) },
	} {
		if p := base; func() bool { edit(&p); return p.Same(base) }() {
			t.Errorf("another %s makes no other state", what)
		}
	}
}

func TestFailedKeepsTheKernelsNumber(t *testing.T) {
	denied := Failed(AttachFailed, "eth0", &os.PathError{Op: "attach", Path: "eth0", Err: syscall.EPERM})
	reworded := Failed(AttachFailed, "eth0", &os.PathError{Op: "attach the program to", Path: "eth0",
		Err: syscall.EPERM})
	gone := Failed(AttachFailed, "eth0", &os.PathError{Op: "attach", Path: "eth0", Err: syscall.ENODEV})
	if !denied.Same(reworded) || denied.Same(gone) || denied.Text() == reworded.Text() {
		t.Errorf("%+v, %+v, %+v", denied, reworded, gone)
	}
}

func TestFailedIsOneLine(t *testing.T) {
	p := Failed(NoEndpoint, "vx-lab", errors.Join(errors.New("endpoint a: gone"), errors.New("endpoint b: down")))
	if got, want := p.Text(), "endpoint a: gone; endpoint b: down"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// The MTU of a host port is the file's: what an agent sets again is not to be changed by "ip link".
func TestS84_AnEndpointsLowMTUIsRaisedWhereItIsSet(t *testing.T) {
	p := Problem{Code: LowMTU, Device: "vmk0", Other: "tep", Have: 1500, Want: 1550, Peer: "lab"}
	if got, want := p.Text(), "raise it (ip link set vmk0 mtu 1550)"; !strings.HasSuffix(got, want) {
		t.Errorf("a card: %q, want %q", got, want)
	}
	p.Kind = "underlay"
	if got, want := p.Text(), "set mtu: 1550 at switch underlay"; !strings.Contains(got, want) ||
		strings.Contains(got, "ip link") {
		t.Errorf("a host port: %q, want %q", got, want)
	}
}

func TestS84_APortWithoutItsTunnelSaysWhereToLook(t *testing.T) {
	p := Problem{Code: NoUplink, Kind: "tunnel", Peer: "tunnel"}
	if got, want := p.Text(), "heddle uplink show tunnel"; !strings.Contains(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestADeviceByItsOtherNameIsNamed(t *testing.T) {
	p := Problem{Code: DeviceMissing, Device: "enp5s0"}
	if got, want := p.Fix(), "Make the device enp5s0, or correct its name."; got != want {
		t.Errorf("no device has the name: %q, want %q", got, want)
	}
	p.Peer = "eth9"
	if got, want := p.Text(), "enp5s0 is another name of device eth9"; !strings.HasPrefix(got, want) {
		t.Errorf("a device has it: %q, want %q", got, want)
	}
}

func TestRefAndValue(t *testing.T) {
	if (Problem{}).Ref() != nil || (*Problem)(nil).Value() != (Problem{}) {
		t.Error("no state is one")
	}
	if p := full(UpDelay); *p.Ref() != p || p.Ref().Value() != p || First(Problem{}, p, Of(Flapping)) != p ||
		!First().None() {
		t.Error("a state is lost")
	}
}

// A device that exists and can't serve must not be created as a fix.
func TestFixOfADevice(t *testing.T) {
	for c, want := range map[Code]string{
		NoDevice:      "Bind a device to it.",
		DeviceMissing: "Write PEER in place of DEVICE.", // of which DEVICE is another name
		OwnerAwaited:  "Start its VM, or disconnect the port if the VM is gone: heddle port disconnect PEER.",
		Loopback:      "Name another device: ",
		SwitchEnd:     "Name another device: ",
		WrongDevice:   "Name another device: ",
		BondMember:    "Make PEER the uplink's device, or take DEVICE out of it.",
		BridgeMember:  "Take DEVICE out of PEER: a device has one switch.",
		DeviceMember:  "Take DEVICE out of PEER: a device has one switch.",
		VLANDevice:    "Make the device under it an uplink, ",
		LowMTU:        "Raise the MTU of DEVICE, or lower that of switch PEER.",
		AttachQueued:  "Wait until its device is attached.",
		AttachFailed:  "Remove what keeps its device from being used; ",
	} {
		t.Run(string(c), func(t *testing.T) {
			if got := full(c).Fix(); !strings.HasPrefix(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}
