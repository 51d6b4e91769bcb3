package trace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/diagnose"
	"heddle/internal/diagnose/trace"
	"heddle/internal/host/interrupt"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

const traceLong = `Trace a frame on the active plan and tables: where it would go, or why it is dropped. The first line is the answer; of
a no, the policy follows that causes it, the level that set it, and the command that changes it. Then comes the way, stage
by stage: who gets the frame, on which uplink and with which tag. Nothing is sent, and no table, counter or event changes.

FROM and TO are ports, uplinks, or the MAC or IP address of a guest, as far as it is known: those that a port lists, has
learned or uses, and those of metered flows. With the two ends alone it checks whether they can talk, and over what path:
ARP, IPv4 and IPv6, in both directions.

A frame is given by its fields, in hexadecimal, or in a capture file. Fields that are left out are filled in as the sender
would: its own MAC, the receiver's MAC (TO), the tag of a trunk. From an uplink a frame comes as the physical network would
bring it. Of a file that "heddle capture -w" wrote, the frames are traced that entered the switch at a port, from that port.

From the tunnel of a switch (its uplink "tunnel") a frame comes in a VNI, from an endpoint of another host: --vni, --peer.
Where a frame leaves by the tunnel, the answer names the outer addresses, and how it is known that the guest is there.

With --controller, FROM and TO may be on two hosts: each answers for its part, and what the physical network does in
between is not known. Where several hosts have a port of that name, write HOST:PORT. Frames of a file that was captured on
several hosts are traced each on its host.

Exit status: 0 for yes, or where the physical network decides; 1 for no, also where it cannot be found out; 2 for wrong use.
The model and the kernel program both compute the answer. If they differ, that is a fault of Heddle: it is shown, and the
status is 1.`

const traceExample = `  heddle trace vm1/eth0 vm2/eth0
  heddle trace 192.0.2.1 192.0.2.2
  heddle trace vm1/eth0 vm2/eth0 --ip 192.0.2.1,192.0.2.2 --tcp 443
  heddle trace vm1/eth0 --arp 192.0.2.2
  heddle trace vm1/eth0 --dst-mac 02:00:00:00:02:01 --length 1600
  heddle trace uplink1 vm2/eth0 --vlan 10 --ip 198.51.100.7,192.0.2.2 --icmp
  heddle trace tunnel vm2/eth0 --vni 5000 --peer 192.0.2.1 --arp 10.0.0.2
  heddle trace --pcap vm1.pcapng --packet 3
  tcpdump -r vm1.pcap -xx -c 1 -t | heddle trace vm1/eth0 --hex -
  heddle --controller /run/heddle-controller/api.sock trace esx1:vm1 esx2:vm2`

// traceFlags are the flags of "heddle trace" as they were written.
type traceFlags struct {
	from, to, dstMAC, srcMAC          string
	vlan, qinq                        uint16
	etherType, arp, ip, ip6, tcp, udp string
	icmp                              bool
	length, packet                    int
	hex, pcap                         string
	verbose                           bool
	vni                               uint32
	peer                              string

	everywhere bool // all hosts are asked: which of them has a frame of the file is found out then

	numbers []int // positions in the file of the frames that are sent
}

func New(d cli.Deps) *cobra.Command {
	t, o, f := &cli.Target{}, &cli.Output{}, &traceFlags{}
	c := &cobra.Command{
		Use: "trace [FROM [TO]]", Short: "Trace a frame: where it would go, or why it is dropped",
		Long: traceLong, Example: traceExample, Args: cli.AtMost("FROM", "TO"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			if err := f.ends(args); err != nil {
				return err
			}
			d := d
			d.Stdin = interrupt.Reader(c.Context(), d.Stdin)
			all, err := t.Everywhere()
			if err != nil {
				return err
			}
			f.everywhere = all
			q, notes, err := f.request(d, c)
			if err != nil {
				return err
			}
			if t.Host != "" { // a file of several hosts names them
				q.From = strings.TrimPrefix(q.From, t.Host+":")
			}
			if all {
				return traceEverywhere(d, c, t, o, f, q, notes)
			}
			return traceOn(d, c, t, o, f, q, notes)
		},
	}
	t.Flags(d, c)
	t = t.Looking(d, c)
	o.Flag(c)
	f.flags(c)
	return c
}

// traceOn traces on one host.
func traceOn(d cli.Deps, c *cobra.Command, t *cli.Target, o *cli.Output, f *traceFlags, q diagnose.Request,
	notes []string) error {
	r, err := cli.Ask(c, t, func(ctx context.Context, s api.Service) (*diagnose.Report, error) {
		return s.Trace(ctx,
			q)
	})
	if err != nil {
		return err
	}
	f.number(r)
	r.Notes = append(notes, r.Notes...)
	if err := o.Print(d, r, func(w io.Writer) error { return printTrace(d, w, r, f.verbose) }); err != nil {
		return err
	}
	if !r.Agree || r.Answer.Verdict == diagnose.No {
		return &cli.SilentError{Status: cli.ExitFailure}
	}
	return nil
}

// ends takes in the ends that are given as arguments.
func (f *traceFlags) ends(args []string) error {
	for i, to := range []*string{&f.from, &f.to} {
		if i >= len(args) {
			return nil
		}
		if *to != "" && *to != args[i] {
			flag := []string{"--from", "--to"}[i]
			return cli.Usagef("%s %s and the argument %s name the same end: leave one of them out", flag, *to, args[i])
		}
		*to = args[i]
	}
	return nil
}

func (f *traceFlags) flags(c *cobra.Command) {
	s := c.Flags()
	s.StringVar(&f.from, "from", "", "where the frame enters, as the first argument: a port, an uplink, "+
		"SWITCH/UPLINK, or "+
		"the MAC or IP address of a guest")
	s.StringVar(&f.to, "to", "", "the end the frame is meant for, as the second argument: fills in its MAC, and "+
		"explains "+
		"why it gets nothing")
	s.StringVar(&f.dstMAC, "dst-mac", "", "destination MAC")
	s.StringVar(&f.srcMAC, "src-mac", "", "source MAC; default: the port's own")
	s.Uint16Var(&f.vlan, "vlan", 0, "802.1Q tag the frame carries, 0–4094 (0 = priority tag); default: none, or what "+
		"--to asks for on a trunk")
	s.Uint16Var(&f.qinq, "qinq", 0, "outer 802.1ad tag, 0–4094")
	s.Uint32Var(&f.vni, "vni", 0, "from a tunnel: the VNI in which the frame comes; default: that of TO")
	s.StringVar(&f.peer, "peer", "", "from a tunnel: the endpoint of another host that sends it; default: a right one")
	s.StringVar(&f.etherType, "ethertype", "", "Ethernet type of another protocol, such as 0x88cc")
	s.StringVar(&f.arp, "arp", "", "an ARP request: [SRC,]DST; with --dst-mac a reply")
	s.StringVar(&f.ip, "ip", "", "an IPv4 packet: [SRC,]DST")
	s.StringVar(&f.ip6, "ip6", "", "an IPv6 packet: [SRC,]DST")
	s.StringVar(&f.tcp, "tcp", "", "TCP: [SRC,]DST port")
	s.StringVar(&f.udp, "udp", "", "UDP: [SRC,]DST port")
	s.BoolVar(&f.icmp, "icmp", false, "an echo request (ping), as without --tcp and --udp")
	s.IntVar(&f.length, "length", 0, "length of the frame in bytes, with its tags and without FCS; default: what its "+
		"headers need, at least 60")
	s.StringVar(&f.hex, "hex", "", "the frame in hexadecimal, or - to read it from standard input")
	s.StringVar(&f.pcap, "pcap", "", "capture file, pcap or pcapng, or - for standard input: its frames are traced "+
		"one after the other")
	s.BoolVarP(&f.verbose, "verbose", "v", false, "also say that model and kernel program agree")
	s.IntVar(&f.packet, "packet", 0, "with --pcap: show this frame in full, counted from 1")
}

// fieldFlags returns the flags that describe a frame by its fields.
func fieldFlags() []string {
	return []string{"dst-mac", "src-mac", "vlan", "qinq", "ethertype", "arp", "ip", "ip6", "tcp", "udp", "icmp",
		"length"}
}

// request makes a request from the flags.
func (f *traceFlags) request(d cli.Deps, c *cobra.Command) (q diagnose.Request, notes []string, err error) {
	q = diagnose.Request{From: f.from, To: f.to, Packet: f.packet}
	given := c.Flags().Changed
	if q.Through, err = f.through(given); err != nil {
		return q, nil, err
	}
	var fields []string
	for _, name := range fieldFlags() {
		if given(name) {
			fields = append(fields, "--"+name)
		}
	}
	switch {
	case f.from == "" && !given("pcap"):
		return q, nil, cli.Usagef("say where the frame enters: a port, an uplink, or the address of a guest")
	case given("hex") && given("pcap"):
		return q, nil, cli.Usagef("--hex and --pcap exclude each other")
	case (given("hex") || given("pcap")) && len(fields) > 0:
		return q, nil, cli.Usagef("a frame from --hex or --pcap is taken as it is: leave out %s",
			strings.Join(fields, ", "))
	case given("packet") && (!given("pcap") || f.packet < 1):
		return q, nil, cli.Usagef("--packet is the number of a frame of --pcap, counted from 1")
	case given("hex"):
		q.Frames, err = f.readHex(d)
	case given("pcap") && f.everywhere:
	case given("pcap"):
		notes, err = f.readCapture(c.Context(), d, &q)
	case len(fields) > 0:
		q.Frame, err = f.fields(given)
	}
	if err != nil {
		return q, nil, &cli.UsageError{Err: err}
	}
	return q, notes, nil
}

// through is the packet in which frames come from a tunnel; nil where no flag says so.
func (f *traceFlags) through(given func(string) bool) (*diagnose.Through, error) {
	if !given("vni") && !given("peer") {
		return nil, nil
	}
	if given("vni") && (f.vni < 1 || f.vni > spec.MaxVNI) {
		return nil, cli.Usagef("--vni %d: a VNI is 1 to %d", f.vni, spec.MaxVNI)
	}
	p := &diagnose.Through{VNI: f.vni}
	if !given("peer") {
		return p, nil
	}
	var err error
	if p.Source, err = netip.ParseAddr(f.peer); err != nil {
		return nil, cli.Usagef("--peer %q is no IP address, such as 192.0.2.2", f.peer)
	}
	return p, nil
}

func (f *traceFlags) readHex(d cli.Deps) ([][]byte, error) {
	text := f.hex
	if text == "-" {
		b, err := io.ReadAll(io.LimitReader(d.Stdin, 1<<20))
		if err != nil {
			return nil, err
		}
		text = string(b)
	}
	b, err := trace.ParseHex(text)
	if err != nil {
		return nil, fmt.Errorf("--hex: %w", err)
	}
	return [][]byte{b}, nil
}

// fields makes the fields of a frame from the given flags.
func (f *traceFlags) fields(given func(string) bool) (*diagnose.Fields, error) {
	if given("ip") && given("ip6") {
		return nil, errors.New("--ip and --ip6 exclude each other")
	}
	out := &diagnose.Fields{ICMP: f.icmp, Length: f.length}
	if given("length") && f.length < 14 {
		return nil, fmt.Errorf("--length %d: a frame has at least 14 bytes", f.length)
	}
	for _, p := range []struct {
		flag string
		read func() error
	}{
		{"dst-mac", func() error { return readMAC(f.dstMAC, &out.DstMAC) }},
		{"src-mac", func() error { return readMAC(f.srcMAC, &out.SrcMAC) }},
		{"vlan", func() error { out.VLAN = &f.vlan; return nil }},
		{"qinq", func() error { out.Outer = &f.qinq; return nil }},
		{"ethertype", func() error { return readType(f.etherType, &out.EtherType) }},
		{"arp", func() (err error) { out.ARP, err = trace.ParseAddresses(f.arp, 4); return err }},
		{"ip", func() (err error) { out.IP, err = trace.ParseAddresses(f.ip, 4); return err }},
		{"ip6", func() (err error) { out.IP, err = trace.ParseAddresses(f.ip6, 6); return err }},
		{"tcp", func() (err error) { out.TCP, err = trace.ParsePorts(f.tcp); return err }},
		{"udp", func() (err error) { out.UDP, err = trace.ParsePorts(f.udp); return err }},
	} {
		if !given(p.flag) {
			continue
		}
		if err := p.read(); err != nil {
			return nil, fmt.Errorf("--%s: %w", p.flag, err)
		}
	}
	return out, nil
}

func readMAC(text string, to **plan.MAC) error {
	m, err := plan.ParseMAC(text)
	*to = &m
	return err
}

func readType(text string, to **uint16) error {
	n, err := strconv.ParseUint(text, 0, 16)
	if err != nil {
		return fmt.Errorf("%q is not a type such as 0x88cc", text)
	}
	v := uint16(n)
	*to = &v
	return nil
}
