package traffic

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"heddle/internal/lab/netns"
)

// listening is the first line a sink process prints.
type listening struct {
	Listening netip.AddrPort `json:"listening"`
	// Sessions are the addresses of all sessions; the first of them is Listening.
	Sessions []netip.AddrPort `json:"sessions,omitempty"`
}

// Command is the command tree "traffic" with one verb per kind and "sink". Each prints one line of JSON, a Result or a
// SinkResult; a sink first prints where it listens, and ends when its standard input does.
func Command() *cobra.Command {
	c := &cobra.Command{
		Use:   "traffic",
		Short: "Measure a network path: one end of a measurement",
		Long: "One end of a measurement, as a process. Start a sink in one namespace or guest and a sender in " +
			"another.",
		Example: "  heddle traffic sink --kind stream --listen 10.0.0.2:5001\n  heddle traffic stream --to " +
			"10.0.0.2:5001 --duration 5s",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(sinkCommand())
	for _, k := range Kinds() {
		c.AddCommand(sendCommand(k))
	}
	return c
}

// endFlags are the flags of Endpoint.
type endFlags struct {
	ns   string
	cpus []int
	nice int
}

func (f *endFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.ns, "netns", "", "network `namespace` to run in (default: the present one)")
	c.Flags().IntVar(&f.nice, "nice", 0, "priority of this process and, where the kernel groups by session, of its "+
		"session, 0-19: the higher, the more others come first")
	c.Flags().IntSliceVar(&f.cpus, "cpus", nil, "`CPUs` the measuring thread may use (default: all)")
}

func (f *endFlags) endpoint() (Endpoint, error) {
	e := Endpoint{CPUs: f.cpus}
	if err := beNice(f.nice); err != nil {
		return e, err
	}
	if f.ns == "" {
		return e, nil
	}
	var err error
	e.NS, err = netns.Open(f.ns)
	return e, err
}

// beNice lowers the priority of this process's group and session; 0 leaves them as they are.
func beNice(n int) error {
	if n == 0 {
		return nil
	}
	if err := unix.Setpriority(unix.PRIO_PGRP, 0, n); err != nil {
		return fmt.Errorf("set priority %d: %w", n, err)
	}
	err := os.WriteFile("/proc/self/autogroup", []byte(strconv.Itoa(n)), 0)
	if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("set priority %d of the session: %w", n, err)
	}
	return nil
}

// args are the flags for the endpoint's CPUs; its namespace is entered before the process is started.
func (e Endpoint) args() []string {
	var args []string
	for _, c := range e.CPUs {
		args = append(args, "--cpus", strconv.Itoa(c))
	}
	return args
}

func sendCommand(kind Kind) *cobra.Command {
	load := Load{Kind: kind}
	var end endFlags
	var to []string
	var begin string
	shorts := map[Kind]string{
		KindStream: "Send one TCP stream as fast as it goes",
		KindRR:     "Send requests on one TCP connection, one at a time",
		KindCRR:    "Send requests, each on a TCP connection of its own",
		KindUDP:    "Send numbered UDP packets",
		KindEcho:   "Send ICMP echo requests and count the replies to each",
		KindScan:   "Send TCP SYNs to closed ports and count what comes back",
	}
	example := "  heddle traffic " + string(kind) + " --to 10.0.0.2:5001 --duration 5s"
	if kind.alone() {
		example = "  heddle traffic " + string(kind) + " --to 10.0.0.2 --duration 5s"
	}
	c := &cobra.Command{
		Use: string(kind), Short: shorts[kind], Example: example, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			dest, err := destinations(kind, to)
			if err != nil {
				return err
			}
			if load.Begin, err = instant(begin); err != nil {
				return err
			}
			e, err := end.endpoint()
			if err != nil {
				return err
			}
			threadsFor(len(dest))
			res, err := SendEach(c.Context(), e, load, dest)
			if err != nil {
				return err
			}
			return json.NewEncoder(c.OutOrStdout()).Encode(res)
		},
	}
	end.add(c)
	c.Flags().StringArrayVar(&to, "to", nil, "`address:port` of the sink, once for each session; for echo and scan "+
		"the host's address")
	c.Flags().StringVar(&begin, "begin", "", "`time` (RFC 3339) at which the measured interval begins, for several "+
		"senders at once (default: after the warm-up)")
	if kind == KindCRR {
		c.Flags().IntVar(&load.Addresses, "addresses", 1,
			"how many consecutive addresses of the server to connect to in turn")
	}
	if kind == KindScan {
		c.Flags().IntVar(&load.Flows, "flows", defaultScanFlows, "how many different flows")
	}
	if kind == KindUDP {
		c.Flags().IntVar(&load.Flows, "flows", 1, "from how many ports to send in turn")
	}
	if kind == KindStream {
		c.Flags().BoolVar(&load.Nagle, "nagle", false, "let small writes wait for one another, as TCP does by default")
	}
	c.Flags().DurationVar(&load.Warmup, "warmup", 200*time.Millisecond, "time before the measured interval")
	c.Flags().DurationVar(&load.Duration, "duration", time.Second,
		"length of the measured interval, 0 = until interrupted")
	c.Flags().IntVar(&load.Size, "size", 0,
		"`bytes` per write, message or packet (default: what is usual for the kind)")
	c.Flags().Float64Var(&load.Rate, "rate", 0, "packets or requests per second (default: udp as many as possible, "+
		"echo 10, scan 1000)")
	return c
}

// threadsFor makes sure that the sessions of this process need not wait for one another: each blocks a thread in system
// calls.
func threadsFor(sessions int) {
	if sessions > 1 {
		runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), sessions+1))
	}
}

// instant reads --begin; empty is the zero time.
func instant(text string) (t time.Time, err error) {
	if text == "" {
		return t, nil
	}
	if t, err = time.Parse(time.RFC3339Nano, text); err != nil {
		return t, fmt.Errorf("--begin %q: want a time such as 2026-01-02T15:04:05.123Z", text)
	}
	return t, nil
}

// destinations reads every --to.
func destinations(kind Kind, to []string) ([]netip.AddrPort, error) {
	if len(to) == 0 {
		to = []string{""}
	}
	var all []netip.AddrPort
	for _, t := range to {
		a, err := destination(kind, t)
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, nil
}

// destination reads a --to; an echo or a scan goes to a host, everything else to a port.
func destination(kind Kind, to string) (netip.AddrPort, error) {
	if kind.alone() {
		a, err := netip.ParseAddr(to)
		if err != nil {
			return netip.AddrPort{}, fmt.Errorf("--to %q: want an IP address such as 10.0.0.2", to)
		}
		return netip.AddrPortFrom(a, 0), nil
	}
	a, err := netip.ParseAddrPort(to)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("--to %q: want an address and port such as 10.0.0.2:5001", to)
	}
	return a, nil
}

// Args are the arguments of "traffic" by which a process sends the load, such as one in a guest.
func (l Load) Args(to []netip.AddrPort) []string {
	args := []string{
		string(l.Kind), "--warmup", l.Warmup.String(), "--duration", l.Duration.String(),
		"--size", strconv.Itoa(l.Size), "--rate", strconv.FormatFloat(l.Rate, 'g', -1, 64),
	}
	for _, a := range to {
		dest := a.String()
		if l.Kind.alone() {
			dest = a.Addr().String()
		}
		args = append(args, "--to", dest)
	}
	if l.Addresses > 1 {
		args = append(args, "--addresses", strconv.Itoa(l.Addresses))
	}
	if l.Kind == KindScan || l.Kind == KindUDP && l.Flows > 1 {
		args = append(args, "--flows", strconv.Itoa(l.Flows))
	}
	if l.Nagle {
		args = append(args, "--nagle")
	}
	if !l.Begin.IsZero() {
		args = append(args, "--begin", l.Begin.Format(time.RFC3339Nano))
	}
	return args
}

func sinkCommand() *cobra.Command {
	var end endFlags
	var kind, at string
	var size, sessions int
	var nap time.Duration
	var buffer, gather int
	c := &cobra.Command{
		Use: "sink", Short: "Receive what a sender sends, until standard input ends", Args: cobra.NoArgs,
		Example: "  heddle traffic sink --kind udp --listen 10.0.0.2:5001\n  heddle traffic sink --listen 10.0.0.2:0 " +
			"--netns guest2",
		RunE: func(c *cobra.Command, _ []string) error {
			addr, err := netip.ParseAddrPort(at)
			if err != nil {
				return fmt.Errorf("--listen %q: want an address and port such as 10.0.0.2:0", at)
			}
			e, err := end.endpoint()
			if err != nil {
				return err
			}
			return serveUntilEOF(c, e, SinkOptions{Kind: Kind(kind), At: addr, Size: size, Nap: nap, Buffer: buffer,
				Gather: gather}, sessions)
		},
	}
	end.add(c)
	c.Flags().StringVar(&kind, "kind", string(KindStream), fmt.Sprintf("`kind` of traffic: %s, %s, %s or %s",
		KindStream, KindRR, KindCRR, KindUDP))
	c.Flags().StringVar(&at, "listen", "", "`address:port` to listen at; port 0 = one that is free")
	c.Flags().IntVar(&size, "size", 0, "`bytes` of a request and of its answer (default 1)")
	c.Flags().IntVar(&sessions, "sessions", 1, "how many to serve at once, each at a port of its own")
	c.Flags().IntVar(&buffer, "buffer", 0, "lag behind by at most so many `bytes` of packets, with the kernel's "+
		"book-keeping; 0: 4 MiB (udp)")
	c.Flags().IntVar(&gather, "gather", 0, "be woken only when so many `bytes` have come, or nothing for a while "+
		"(stream)")
	c.Flags().DurationVar(&nap, "nap", 0, "look for packets at this `interval` instead of being woken by each (udp)")
	return c
}

// Args are the arguments of "traffic" by which a process is the sink.
func (o SinkOptions) Args() []string {
	return []string{"sink", "--kind", string(o.Kind), "--listen", o.At.String(), "--size", strconv.Itoa(o.Size),
		"--nap", o.Nap.String(), "--buffer", strconv.Itoa(o.Buffer), "--gather", strconv.Itoa(o.Gather)}
}

func serveUntilEOF(c *cobra.Command, e Endpoint, opts SinkOptions, sessions int) error {
	if sessions > 1 && opts.At.Port() != 0 {
		return errors.New("--sessions: several need a port each; leave the choice to the system with port 0")
	}
	threadsFor(sessions)
	sinks, err := ListenEach(e, opts, sessions)
	if err != nil {
		return err
	}
	out := json.NewEncoder(c.OutOrStdout())
	if err := out.Encode(listening{sinks[0].Addr(), sinks.Addrs()}); err != nil {
		return err
	}
	eof := make(chan struct{})
	go func() {
		defer close(eof)
		// The end of the input ends the sink. If the process that started it dies, that closes the input too,
		// so that no sink is left behind.
		_, _ = io.Copy(io.Discard, c.InOrStdin())
	}()
	select {
	case <-eof:
	case <-c.Context().Done():
	}
	res, err := sinks.Finish()
	if err != nil {
		return err
	}
	return out.Encode(res)
}
