package fleet

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"heddle/internal/api"
	"heddle/internal/lab/netns"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/cable"
	"heddle/internal/test/testkit/realhost"
)

// tunnelLine is a line of "heddle capture -o json" of a tunnel.
type tunnelLine struct {
	HostName, Switch, Port, Direction, Stage, Device, Reason, From, Remote, Local string
	VLAN                                                                          struct{ VNI uint32 }
	Data                                                                          []byte
}

// capturing is a "heddle capture -o json" over all hosts.
type capturing struct {
	f         *fleet
	cmd       *exec.Cmd
	out, errs watchedText
}

// capturesAll begins a capture over all hosts, and returns when one of them has begun.
func (f *fleet) capturesAll(args ...string) *capturing {
	f.t.Helper()
	c := &capturing{f: f, cmd: f.controller.Command(append([]string{"capture", "-o", "json"}, args...)...)}
	c.cmd.Stdout, c.cmd.Stderr = &c.out, &c.errs
	if err := c.cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { kill(c.cmd) })
	c.says("capturing")
	return c
}

// says waits until the command has written that to standard error.
func (c *capturing) says(text string) {
	c.f.t.Helper()
	c.f.controller.Await("the capture says "+text, func() bool { return strings.Contains(c.errs.String(), text) })
}

// end interrupts the capture, and returns everything that it showed.
func (c *capturing) end(status int, errs ...string) {
	c.f.t.Helper()
	if err := c.cmd.Process.Signal(syscall.SIGINT); err != nil {
		c.f.t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := c.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		c.f.t.Fatal(err)
	}
	if got := c.cmd.ProcessState.ExitCode(); got != status {
		c.f.t.Errorf("%v: status %d, want %d: %s", c.cmd.Args, got, status, c.errs.String())
	}
	for _, text := range append(errs, "captured, ") {
		if !strings.Contains(c.errs.String(), text) {
			c.f.t.Errorf("%v does not say %q: %s", c.cmd.Args, text, c.errs.String())
		}
	}
}

// with are the lines about frames with that text.
func (c *capturing) with(text string) (list []tunnelLine) {
	for line := range strings.Lines(c.out.String()) {
		var l tunnelLine
		if json.Unmarshal([]byte(line), &l) == nil && bytes.Contains(l.Data, []byte(text)) { // else it is being written
			list = append(list, l)
		}
	}
	return list
}

// story is what a line says beside its frame.
func (l tunnelLine) story() string {
	return strings.Join(strings.Fields(fmt.Sprintf("%s: %s %s %s %s %s from %s %s %s vni %d", l.HostName, l.Port,
		l.Device, l.Direction, l.Stage, l.Reason, l.From, l.Remote, l.Local, l.VLAN.VNI)), " ")
}

var tryOf = regexp.MustCompile(`try \d+`)

// sees sends frames until these are the captured stories of one of them: a capture begins on one host after the other,
// and a frame of which the receiver's place is not known yet goes to all.
func (c *capturing) sees(from, to int, text string, want ...string) {
	c.f.t.Helper()
	n := 0
	slices.Sort(want)
	var got map[string][]string
	defer func() {
		if c.f.t.Failed() {
			c.f.t.Logf("%v has shown of the last %q, and says %s", c.cmd.Args[4:], got[fmt.Sprint("try ", n-1)],
				c.errs.String())
		}
	}()
	c.f.controller.Await(fmt.Sprintf("%v shows %q: %q", c.cmd.Args[4:], text, want), func() bool {
		n++
		c.f.guests[fmt.Sprintf("p-web@%d", from)].Send(cable.Frame(fleetMAC(to, 3), fleetMAC(from, 3), 0,
			fmt.Sprintf("%s, try %d", text, n)))
		got = map[string][]string{}
		for _, l := range c.with(text) {
			try := string(tryOf.Find(l.Data)) // outer packets differ from host to host
			got[try] = append(got[try], l.story())
		}
		for _, stories := range got {
			slices.Sort(stories)
			if slices.Equal(stories, want) {
				return true
			}
		}
		return false
	})
}

// overlayFleet is three hosts with an endpoint each, of which two have joined a controller that keeps its state in
// somebody else's etcd.
func overlayFleet(t *testing.T) (f *fleet, router *netns.NS) {
	f = newFleetSized(t, 3, ownConfig, "own1", "own2")
	router = f.routed()
	dir := t.TempDir()
	newEtcd(t, f.network, dir)
	f.controller.Args = outsideFlags(dir, "/a")
	f.controller.Start()
	for n := range 2 {
		f.controller.Join(f.hosts[n].Host, fmt.Sprintf("esx%d", n), map[string]string{"rack": "a"})
	}
	return f, router
}

// TestS84_CapturesAtTunnelsOfAllHosts: one capture by way of a controller has the frames in the tunnels of all hosts,
// inner and outer, each with its host, its ends and its reason, and those of hosts that come, or come back, meanwhile.
func TestS84_CapturesAtTunnelsOfAllHosts(t *testing.T) {
	testkit.Long(t, "captures on hosts that come and go; TestS84_CapturesShowFramesInTheTunnel has captures at a "+
		"tunnel")
	t.Parallel()
	testkit.Tool(t, "tcpdump")
	f, router := overlayFleet(t)
	f.noTunnelYet()
	f.controller.Define(segmentText)
	f.connect(0, 3, "p-web", "web")
	f.connect(1, 3, "p-web", "web")
	inner, drops := f.capturesAll("tunnel", "--vni", "5000"), f.capturesAll("tunnel", "--stage", "drop")
	outer := f.capturesAll("tunnel", "--outer", "--vni", "5000", "udp", "port", "4789")
	between := func(n int) (list []string) { // a frame of the first host to the n-th
		return []string{fmt.Sprintf("esx0: tunnel out deliver from p-web 10.9.%d.2 10.9.0.2 vni 5000", n),
			fmt.Sprintf("esx%d: tunnel in admit from 10.9.0.2 10.9.%d.2 vni 5000", n, n)}
	}
	onWire := func(n int) []string {
		return []string{"esx0: tunnel u0 out from vni 0", fmt.Sprintf("esx%d: tunnel u0 in from vni 0", n)}
	}
	inner.sees(0, 1, "inside", between(1)...)
	outer.sees(0, 1, "outside", onWire(1)...)

	stranger := cable.Frame(fleetMAC(0, 3), fleetMAC(9, 9), 0, "a stranger's")
	f.controller.Await("the drop is shown", func() bool {
		strange(t, router, "10.9.1.1", "10.9.0.2", stranger)
		return len(drops.with("a stranger's")) > 0
	})
	for _, l := range drops.with("") {
		if l.story() != "esx0: tunnel in drop tunnel-unknown-endpoint from 10.9.1.1 10.9.0.2 vni 5000" {
			t.Errorf("a capture of drops shows %s", l.story())
		}
	}

	drops.end(0)
	f.controller.Join(f.hosts[2].Host, "esx2", map[string]string{"rack": "a"})
	f.connect(2, 3, "p-web", "web")
	inner.sees(0, 2, "to a host that has joined", between(2)...)
	outer.sees(0, 2, "to the same by cable", onWire(2)...)
	f.filtersOuter(onWire(2))

	f.hosts[1].End(syscall.SIGKILL)
	inner.says("host esx1")
	outer.says("host esx1")
	inner.sees(0, 2, "while one is dead", between(2)...)
	f.hosts[1].Start("")
	f.hosts[1].Up("p-web")
	inner.says("host esx1 answers; its frames are captured")
	outer.says("host esx1 answers; its frames are captured")
	inner.sees(0, 1, "to a host that is back", between(1)...)
	outer.sees(0, 1, "to the same by its cable", onWire(1)...)
	inner.end(1, "host esx1 did not end its capture")
	outer.end(1, "host esx1 did not end its capture")
	f.tunnelCapturesRefused()
	f.tunnelCapturesLimited()
}

// filtersOuter: a filter of outer packets has those alone that match.
func (f *fleet) filtersOuter(onWire []string) {
	f.t.Helper()
	f.allUp()
	c := f.capturesAll("tunnel", "--outer", "--vni", "5000", "dst", "host", "10.9.2.2")
	c.sees(0, 2, "to that one alone", onWire...)
	other := cable.Frame(fleetMAC(1, 3), fleetMAC(0, 3), 0, "to another one")
	f.guests["p-web@0"].Send(other)
	if !f.guests["p-web@1"].Await(other, realhost.Patience) {
		f.t.Error("a frame to another one did not come")
	}
	c.sees(0, 2, "after that", onWire...)
	if got := c.with("to another one"); len(got) > 0 {
		f.t.Errorf("the filter leaves out nothing: %s", got[0].story())
	}
	c.end(0)
}

// strange sends a frame in VXLAN from an address that is no endpoint.
func strange(t *testing.T, ns *netns.NS, from, to string, frame []byte) {
	t.Helper()
	inside(t, ns, func() error {
		c, err := net.DialUDP("udp", &net.UDPAddr{IP: net.ParseIP(from)}, &net.UDPAddr{IP: net.ParseIP(to), Port: 4789})
		if err != nil {
			return err
		}
		_, err = c.Write(append([]byte{8, 0, 0, 0, 0, 0x13, 0x88, 0}, frame...))
		return errors.Join(err, c.Close())
	})
}

// refusesCapture makes sure that a capture is refused with one line.
func (f *fleet) refusesCapture(status int, line string, args ...string) {
	f.t.Helper()
	f.shows(status, "", "heddle: "+line+"\n", append([]string{"capture"}, args...)...)
}

// noTunnelYet: captures of tunnels where no host has one.
func (f *fleet) noTunnelYet() {
	f.t.Helper()
	f.refusesCapture(1, "no switch has a tunnel: it is where a switch has overlay segments", "tunnel")
	f.refusesCapture(1, "no switch of this host has a tunnel, and so no outer packets", "--outer")
	f.refusesCapture(1, "switch lan has no tunnel, so that none of its frames has a VNI", "any", "--vni", "5000")
}

// tunnelCapturesRefused: what is wrong with a capture of tunnels is said in one line, however many hosts say it.
func (f *fleet) tunnelCapturesRefused() {
	f.t.Helper()
	const vni = `VNI "0": it is a number from 1 to 16777214, with a VLAN inside if you want: 5000, 5000/10, ` +
		`5000/10-20, 5000/untagged`
	const wrong = "no packet of the tunnel matches the filter: with --outer it is about packets of UDP to port 4789 " +
		"over IPv4 or IPv6, and not about the frames inside; leave out --outer, or select a segment by --vni"
	nobody := "switch dvs has no port in VNI 7000; it has some in 5000"
	for _, row := range []struct {
		args   string
		status int
		line   string
	}{
		{"any --vni 7000", 1, nobody},
		{"tunnel --outer --vni 7000", 1, nobody},
		{"any --vni 0", 2, vni},
		{"--outer --vni 0", 2, vni},
		{"tunnel --switch lan", 1, "switch lan has no tunnel"},
		{"any --vni 5000 --switch lan", 1, "switch lan has no tunnel, so that none of its frames has a VNI"},
		{"--outer --switch lan", 1, "switch lan has no tunnel, and so no outer packets"},
		{"--outer --switch lna", 1, "there is no switch lna; did you mean lan?"},
		{"tunnel --outer tcp port 443", 2, wrong},
		{"tunnel --outer arp", 2, wrong},
		{"tunnel --outer --vni 5000/10", 2,
			"--outer: outer packets are selected by their VNI as a whole, --vni 5000, and not by a VLAN"},
		{"tunnel --outer --vlan 10", 2,
			"--outer: outer packets are selected by their VNI as a whole, --vni 5000, and not by a VLAN"},
		{"p-web --outer", 2, "p-web has no outer packets, only tunnel has"},
	} {
		f.t.Run(row.args, func(t *testing.T) {
			one := *f
			one.t = t
			one.refusesCapture(row.status, row.line, strings.Fields(row.args)...)
		})
	}
	for _, args := range [][]string{{"tunnel", "--outer", "tpc", "port"}, {"tunnel", "tpc", "port"}} {
		f.t.Run(strings.Join(args, " "), func(t *testing.T) {
			out, errs, status := f.controller.Heddle(append([]string{"capture"}, args...)...)
			if status != 2 || out != "" || !strings.HasPrefix(errs, `heddle: filter "tpc port": `) {
				t.Errorf("status %d: %s%s", status, out, errs)
			}
		})
	}
}

// tunnelCapturesLimited: a host that has as many captures as it can have is named, and the others are captured; where
// all have as many, the command ends.
func (f *fleet) tunnelCapturesLimited() {
	f.t.Helper()
	const many = "8 captures run already, and that is as many as there can be at a time: end one of them"
	var full []*captureOf
	for range 8 {
		full = append(full, f.hosts[0].captures(api.Capture{Ports: []string{"tunnel"}}))
	}
	c := f.capturesAll("tunnel")
	c.says("host esx0: " + many)
	c.sees(1, 2, "of the others", "esx1: tunnel out deliver from p-web 10.9.2.2 10.9.1.2 vni 5000",
		"esx2: tunnel in admit from 10.9.1.2 10.9.2.2 vni 5000")
	c.end(1)
	for n := 1; n < 3; n++ {
		for range 8 {
			full = append(full, f.hosts[n].captures(api.Capture{Ports: []string{"tunnel"}}))
		}
	}
	f.refusesCapture(2, many, "tunnel")
	for _, c := range full {
		c.end()
	}
}
