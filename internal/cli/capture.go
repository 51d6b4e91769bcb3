package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/abi"
	"heddle/internal/api"
	"heddle/internal/spec/printable"
)

// anyPort in place of a port means every port, as in tcpdump.
const anyPort = "any"

// endPatience is how long the end of a capture may take before the remaining frames are given up.
const endPatience = 5 * time.Second

// capture is one run of "heddle capture".
type capture struct {
	d        Deps
	client   api.Service
	ask      api.Capture
	filter   string
	vnis     []string
	write    string
	out      stream
	count    uint64
	duration time.Duration
	// compile compiles a filter expression.
	compile func(context.Context, string) ([]api.FilterInstruction, error)
}

func newCapture(d Deps) *cobra.Command {
	t, f := &target{}, &capture{d: d, compile: compileFilter}
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
			"  heddle capture tunnel --outer -w tunnel.pcapng",
		RunE: func(c *cobra.Command, args []string) (err error) {
			if err := f.arguments(args); err != nil {
				return err
			}
			if all, err := t.everywhere(); err != nil {
				return err
			} else if all {
				return f.everywhere(c, t)
			}
			if f.client, err = t.client(); err != nil {
				return err
			}
			return f.run(c.Context())
		},
	}
	t.flags(d, c)
	t = t.looking(d, c)
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
	f.out.flag(c, "")
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
	if err := f.out.check(); err != nil {
		return err
	}
	if f.write != "" && !f.out.text() {
		return usagef("-w writes pcapng and -o %s prints texts: use one of them", f.out.format)
	}
	if f.ask.Snap < 0 || f.ask.Snap > abi.MaxSnap {
		return usagef("--snap %d: it is 1 to %d bytes, or 0 for whole frames", f.ask.Snap, abi.MaxSnap)
	}
	for _, vni := range f.vnis {
		f.ask.Segments = append(f.ask.Segments, api.VNIPrefix+vni)
	}
	if err := f.outerAlone(); err != nil {
		return err
	}
	if f.duration < 0 {
		return usagef("--duration %s: it is not negative", f.duration)
	}
	if len(args) > 1 && f.filter != "" {
		return usagef("the filter is given twice: %q and --filter %q", strings.Join(args[1:], " "), f.filter)
	}
	if len(args) > 0 && args[0] != anyPort {
		f.ask.Ports = append(slices.Clip(f.ask.Ports), args[0])
	}
	if len(args) > 1 {
		f.filter = strings.Join(args[1:], " ")
	}
	return nil
}

// outerAlone refuses what outer packets do not have.
func (f *capture) outerAlone() error {
	switch {
	case !f.ask.Outer:
		return nil
	case len(f.ask.Stages) > 0:
		return usagef("--stage and --outer: an outer packet has no stage; leave one of them out")
	case len(f.ask.Reasons) > 0:
		return usagef("--reason and --outer: an outer packet has no reason; leave one of them out")
	case len(f.ask.Segments) > 0:
		return usagef("--vlan, --vni and --outer: select outer packets by a filter, such as vxlan 5000")
	}
	return nil
}

// run captures until there are enough frames, the time is over, or the user ends it.
func (f *capture) run(ctx context.Context) (err error) {
	if strings.TrimSpace(f.filter) != "" {
		if f.ask.Filter, err = f.compile(ctx, f.filter); err != nil {
			return err
		}
	}
	out, err := f.output()
	if err != nil {
		return err
	}
	s := f.session("", f.client, f.ask, f.tally(out.frame))
	err = s.follow(ctx)
	if closed := out.close(s.counts); err == nil {
		err = closed
	}
	if s.begun {
		summary(f.d.Stderr, s.tally.given, s.counts)
	}
	return err
}

// output returns the output for frames.
func (f *capture) output() (*captureOutput, error) {
	switch f.write {
	case "":
		return newCaptureOutput(f.d.Stdout, nil, &lineSink{out: &f.out, d: f.d})
	case "-":
		if f.d.Colour {
			return nil, usagef("-w - would write a binary file to the terminal: name a file, or pipe it into a " +
				"program such as tshark -r -")
		}
		return newCaptureOutput(f.d.raw, nil, &fileSink{snap: f.ask.Snap})
	}
	file, err := os.OpenFile(f.write, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("write the capture: %w", err)
	}
	return newCaptureOutput(file, file, &fileSink{snap: f.ask.Snap})
}

// tally counts the frames of a capture, of all hosts where there are several.
type tally struct {
	put   func(sighting) error
	most  uint64        // as were asked for; 0 is without end
	full  chan struct{} // closed when as many have come
	begun sync.Once

	mu    sync.Mutex
	given uint64
}

func (f *capture) tally(put func(sighting) error) *tally {
	return &tally{put: put, most: f.count, full: make(chan struct{})}
}

// take passes a frame on, unless there are enough.
func (t *tally) take(s sighting) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.most > 0 && t.given >= t.most {
		return nil
	}
	t.given++
	if err := t.put(s); err != nil {
		return err
	}
	if t.given == t.most {
		close(t.full)
	}
	return nil
}

// captureSession is a capture under way on one host.
type captureSession struct {
	f       *capture
	host    string // "" where it is the only one
	client  api.Service
	ask     api.Capture
	tally   *tally
	ports   map[uint16]api.CapturePort
	counts  api.CaptureCounts
	begun   bool
	waited  func() // ends the wait for the begin: a busy host takes seconds to load the programs
	started chan uint64
}

func (f *capture) session(host string, client api.Service, ask api.Capture, t *tally) *captureSession {
	return &captureSession{f: f, host: host, client: client, ask: ask, tally: t, ports: map[uint16]api.CapturePort{},
		started: make(chan uint64, 1)}
}

// follow ends the capture at the agent when it is over here, and reads the frames captured until then.
func (s *captureSession) follow(ctx context.Context) error {
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		s.watch(ctx, inner, cancel)
	}()
	who := "the agent to begin the capture"
	if s.host != "" {
		who = "host " + s.host + " to begin the capture"
	}
	s.waited = sync.OnceFunc(s.f.d.waits.Waiting(who))
	defer s.waited()
	err := s.client.Capture(inner, s.ask, s.take)
	cancelled := inner.Err() != nil
	cancel()
	<-watched
	if cancelled && errors.Is(err, context.Canceled) {
		return nil // given up after the user's interrupt
	}
	return err
}

// watch waits for the event that ends the capture.
func (s *captureSession) watch(ctx, inner context.Context, cancel context.CancelFunc) {
	var over <-chan time.Time
	var id uint64
	select {
	case id = <-s.started:
	case <-ctx.Done():
		cancel()
		return
	case <-inner.Done():
		return
	}
	if s.f.duration > 0 {
		timer := time.NewTimer(s.f.duration)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-inner.Done():
		return
	case <-ctx.Done():
	case <-s.tally.full:
	case <-over:
	}
	if err := s.client.EndCapture(inner, api.EndCapture{ID: id}); err != nil {
		cancel()
		return
	}
	select {
	case <-inner.Done():
	case <-time.After(endPatience):
		cancel()
	}
}

// take processes one event.
func (s *captureSession) take(e api.CaptureEvent) error {
	switch {
	case e.Started != nil && e.Started.Outer != s.ask.Outer:
		return errors.New("the agent is of an earlier version and does not capture outer packets: restart it with " +
			"this program")
	case e.Started != nil:
		s.begun = true
		s.waited()
		s.tally.begun.Do(func() { fmt.Fprintln(s.f.d.Stderr, "capturing; Ctrl-C ends it") })
		s.started <- e.Started.ID
	case e.Port != nil:
		s.ports[e.Port.Number] = *e.Port
	case e.Counts != nil:
		s.counts = *e.Counts
	case e.Frame != nil:
		return s.tally.take(sighting{CaptureFrame: e.Frame, host: s.host, port: s.ports[e.Frame.Port],
			other: s.ports[e.Frame.Other]})
	}
	return nil
}

// summary says how a capture ended.
func summary(w io.Writer, given uint64, counts api.CaptureCounts) {
	fmt.Fprintf(w, "%s captured, %d selected by the switch, %d lost because they came faster than they were "+
		"read\n", printable.Count(given, "frame", "frames"), counts.Selected, counts.Lost)
	if counts.Ended == "" {
		fmt.Fprintln(w, "the agent ended before the capture: what came last may be missing, and the counts are those "+
			"of up to a second earlier")
	}
}
