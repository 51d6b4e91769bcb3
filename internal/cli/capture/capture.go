package capture

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/abi"
	"heddle/internal/api"
	"heddle/internal/cli"
)

// AnyPort in place of a port means every port, as in tcpdump.
const AnyPort = "any"

// capture is one run of "heddle capture".
type capture struct {
	d        cli.Deps
	client   api.Service
	ask      api.Capture
	filter   string
	vnis     []string
	write    string
	out      cli.Stream
	count    uint64
	duration time.Duration
	// compile compiles a filter expression.
	compile func(context.Context, string) ([]api.FilterInstruction, error)
}

func New(d cli.Deps) *cobra.Command {
	t, f := &cli.Target{}, &capture{d: d, compile: compileFilter}
	c := &cobra.Command{
		Use: "capture [PORT [FILTER…]]", Short: "Show or record frames: received, delivered, or dropped and why",
		Long: "Shows every frame that enters the switch by a port, every frame that is handed to a port, and every " +
			"dropped frame with the reason. Prints one line per frame until it is interrupted, or writes a file " +
			"that Wireshark opens.\n\n" +
			"PORT is a port or an uplink; \"any\" is all of them. FILTER is an expression of pcap-filter(7), the " +
			"language of tcpdump, and needs tcpdump to be installed.\n\n" +
			"With --controller, the port is looked for on all hosts, and the frames of those that have it are merged " +
			"by their time; HOST:PORT is that host's alone.\n\n" +
			"Arrows: → enters by the port, ← is handed to its owner, ✗ is dropped.\n\n" +
			"\"tunnel\" is the tunnel of overlay segments: each copy is shown with the endpoint it goes to, and what " +
			"arrives with the endpoint it comes from, as it is inside its VNI. The filter is about that inner frame. " +
			"With --outer the tunnel's packets are shown as they are on the network between the hosts, and the " +
			"filter is about these.\n\n" +
			"Stages: " + strings.Join(api.Stages(), ", ") + ". Reasons: see reference/reasons.md of the documentation.",
		Example: "  heddle capture vm1/eth0\n  heddle capture vm1/eth0 tcp port 443\n  heddle capture vm1/eth0 -w " +
			"vm1.pcapng\n" +
			"  heddle capture any --stage drop\n  heddle capture --vlan 10 --reason forged-transmit\n  heddle " +
			"capture uplink1 -w - | tshark -r -\n" +
			"  heddle capture tunnel\n  heddle capture any --vni 5000 --stage drop\n" +
			"  heddle capture tunnel --outer --vni 5000 -w tunnel.pcapng",
		RunE: func(c *cobra.Command, args []string) (err error) {
			if err := f.arguments(args); err != nil {
				return err
			}
			if all, err := t.Everywhere(); err != nil {
				return err
			} else if all {
				return f.everywhere(c, t)
			}
			if f.client, err = t.Client(); err != nil {
				return err
			}
			return f.run(c.Context())
		},
	}
	t.Flags(d, c)
	t = t.Looking(d, c)
	fl := c.Flags()
	fl.StringArrayVar(&f.ask.Ports, "port", nil, "also this port or uplink; may be given several times")
	fl.StringArrayVar(&f.ask.Uplinks, "uplink", nil, "also this uplink; may be given several times")
	fl.StringSliceVar(&f.ask.Segments, "vlan", nil, "only these VLANs of the switch: 10, 10-20, untagged, or ad:10 "+
		"of 802.1ad")
	fl.StringSliceVar(&f.vnis, "vni", nil, "only these overlay segments, beside those of --vlan: 5000 with all VLANs "+
		"inside, 5000/10, 5000/untagged")
	fl.BoolVar(&f.ask.Outer, "outer", false, "the tunnel's packets as they are on the network between the hosts, with "+
		"their outer headers")
	fl.StringVar(&f.ask.Switch, "switch", "", "the switch, where several have the port or VLAN")
	fl.StringSliceVar(&f.ask.Stages, "stage", nil, "only these stages: "+strings.Join(api.Stages(), ", "))
	fl.StringSliceVar(&f.ask.Reasons, "reason", nil, "only what is dropped for these reasons")
	fl.StringVarP(&f.filter, "filter", "f", "", "only what the pcap-filter expression matches; instead of FILTER")
	fl.StringVarP(&f.write, "write", "w", "", "write pcapng to this file, - for standard output")
	fl.IntVarP(&f.ask.Snap, "snap", "s", 0, "bytes of each frame to capture at most; 0 is all")
	fl.Uint64VarP(&f.count, "count", "c", 0, "end after so many frames; 0 is never")
	fl.DurationVar(&f.duration, "duration", 0, "end after this time, such as 10s; 0 is never")
	f.out.Flag(c, "")
	completeCapture(c)
	return c
}

func completeCapture(c *cobra.Command) {
	words := func(list ...string) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return list, cobra.ShellCompDirectiveNoFileComp
		}
	}
	var reasons []string
	for r := range abi.Reasons() {
		reasons = append(reasons, r.String())
	}
	_ = c.RegisterFlagCompletionFunc("stage", words(api.Stages()...))
	_ = c.RegisterFlagCompletionFunc("reason", words(reasons...))
}

// arguments reads the command line.
func (f *capture) arguments(args []string) error {
	if err := f.out.Check(); err != nil {
		return err
	}
	if f.write != "" && !f.out.Text() {
		return cli.Usagef("-w writes pcapng and -o %s prints texts: use one of them", f.out.Format)
	}
	if f.ask.Snap < 0 || f.ask.Snap > abi.MaxSnap {
		return cli.Usagef("--snap %d: it is 1 to %d bytes, or 0 for whole frames", f.ask.Snap, abi.MaxSnap)
	}
	for _, vni := range f.vnis {
		f.ask.Segments = append(f.ask.Segments, api.VNIPrefix+vni)
	}
	if err := f.outerAlone(); err != nil {
		return err
	}
	if f.duration < 0 {
		return cli.Usagef("--duration %s: it is not negative", f.duration)
	}
	if len(args) > 1 && f.filter != "" {
		return cli.Usagef("the filter is given twice: %q and --filter %q", strings.Join(args[1:], " "), f.filter)
	}
	if len(args) > 0 && args[0] != AnyPort {
		f.ask.Ports = append(slices.Clip(f.ask.Ports), args[0])
	}
	if len(args) > 1 {
		f.filter = strings.Join(args[1:], " ")
	}
	return nil
}

// outerAlone refuses what outer packets do not have.
func (f *capture) outerAlone() error {
	inside := func(segment string) bool {
		vni, ok := strings.CutPrefix(segment, api.VNIPrefix)
		return !ok || strings.Contains(vni, "/")
	}
	switch {
	case !f.ask.Outer:
		return nil
	case len(f.ask.Stages) > 0:
		return cli.Usagef("--stage and --outer: an outer packet has no stage; leave one of them out")
	case len(f.ask.Reasons) > 0:
		return cli.Usagef("--reason and --outer: an outer packet has no reason; leave one of them out")
	case slices.ContainsFunc(f.ask.Segments, inside):
		return cli.Usagef("--outer: outer packets are selected by their VNI as a whole, --vni 5000, and not by a VLAN")
	}
	return nil
}

// run captures until there are enough frames, the time is over, or the user ends it.
func (f *capture) run(ctx context.Context) (err error) {
	if err := f.compiled(ctx); err != nil {
		return err
	}
	var out *captureOutput
	all := f.tally(func() (func(sighting) error, error) {
		if out, err = f.output(); err != nil {
			return nil, err
		}
		return out.frame, nil
	})
	s := f.session("", f.client, f.ask, all)
	err = s.follow(ctx)
	if out != nil {
		err = errors.Join(err, out.close(s.counts))
	}
	if !s.begun {
		return nothingCaptured(ctx, err, "the agent had not begun the capture")
	}
	summary(f.d.Stderr, s.tally.given, s.counts)
	return err
}

// compiled compiles the filter expression, if there is one, and looks at where the frames are to be written.
func (f *capture) compiled(ctx context.Context) (err error) {
	if f.write == "-" && f.d.Colour {
		return cli.Usagef("-w - would write a binary file to the terminal: name a file, or pipe it into a program " +
			"such as tshark -r -")
	}
	if strings.TrimSpace(f.filter) == "" {
		return nil
	}
	if f.ask.Filter, err = f.compile(ctx, f.filter); err != nil {
		return nothingCaptured(ctx, err, "the filter was not compiled yet")
	}
	return nil
}

// nothingCaptured is the error of a capture that has not begun: why, where the user has interrupted it.
func nothingCaptured(ctx context.Context, err error, why string) error {
	if ctx.Err() == nil {
		return err
	}
	return fmt.Errorf("interrupted: nothing was captured, since %s", why)
}

// output returns the output for frames.
func (f *capture) output() (*captureOutput, error) {
	switch f.write {
	case "":
		return newCaptureOutput(f.d.Stdout, nil, &lineSink{out: &f.out, d: f.d})
	case "-":
		return newCaptureOutput(f.d.Raw, nil, &fileSink{snap: f.ask.Snap})
	}
	file, err := os.OpenFile(f.write, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("write the capture: %w", err)
	}
	return newCaptureOutput(file, file, &fileSink{snap: f.ask.Snap})
}
