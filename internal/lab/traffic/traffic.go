package traffic

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"time"
)

// Kind is what a measurement does.
type Kind string

// The kinds of measurement.
const (
	// KindStream writes into one TCP connection as fast as possible.
	KindStream Kind = "stream"
	// KindRR sends a request and waits for the answer, over and over on one TCP connection.
	KindRR Kind = "rr"
	// KindCRR does the same with a new TCP connection for every transaction.
	KindCRR Kind = "crr"
	// KindUDP sends numbered UDP packets, at a given rate or as fast as possible.
	KindUDP Kind = "udp"
	// KindEcho sends ICMP echo requests and counts the replies to each; it needs no sink.
	KindEcho Kind = "echo"
	// KindScan sends TCP SYNs to closed ports and counts the answers: many two-way flows of two packets. It needs
	// no sink.
	KindScan Kind = "scan"
)

// Kinds are all kinds.
func Kinds() []Kind { return []Kind{KindStream, KindRR, KindCRR, KindUDP, KindEcho, KindScan} }

// alone reports whether the kind needs no sink.
func (k Kind) alone() bool { return k == KindEcho || k == KindScan }

// Load describes one measurement.
type Load struct {
	Kind Kind
	// Warmup comes before the measured interval and is not counted.
	Warmup time.Duration
	// Duration is the length of the measured interval; 0 = until the context ends, which is then no error.
	Duration time.Duration
	// Size is the number of bytes per write (stream: default 65536, what one GSO frame holds), of request and of answer
	// (rr, crr: default 1, at most 65536), or of payload (udp: default 18, which makes a 60-byte Ethernet frame over
	// IPv4; at least 18; echo: default 56).
	Size int
	// Nagle makes small writes of a stream wait while something is unacknowledged (RFC 896), the default of TCP.
	// Without it each leaves at once.
	Nagle bool
	// Gather is how many bytes of a stream must have come before its receiver is woken, 0–1 MiB, like an adapter
	// that combines interrupts. 0: any number. Waking a thread on another CPU is work of the sender, and can cost
	// more than the path.
	Gather int
	// Buffer is how many bytes of packets the sink may lag behind, and Nap how often it looks for them if Rate is
	// 0; 0 = as SinkOptions.Buffer, and 200 µs. If the sender is always faster than the sink, a long queue means
	// writes to memory that is in no cache.
	Buffer int
	Nap    time.Duration
	// Rate is packets or requests per second: udp 0 = as fast as possible, echo default 10, scan default 1000.
	Rate float64
	// Sessions is the number of simultaneous sessions, each with its own sink; 0 = 1. More than one: stream, rr and
	// crr only, at most 64.
	Sessions int
	// Addresses is how many consecutive addresses the server has, beginning with that of the pair: connections of
	// crr use them in turn, so that the same addresses and ports recur later; 0 = 1, at most 256. There are some
	// 14,000 ports for each.
	Addresses int
	// Begin, if set, is when the measured interval begins, so that several senders can have the same interval.
	// Nothing is sent until Warmup before. A sender that is ready too late fails with ErrLate.
	Begin time.Time
	// Flows is how many different flows a scan has, 1–1,000,000; 0 = 5000. They take turns. For udp it is the number
	// of ports from which one sender sends in turn, 1–1024; 0 = 1. Adapters with several queues spread flows, not
	// packets.
	Flows int
}

const (
	maxPayload       = 65000 // bytes that fit into one IP packet with all headers
	maxTransaction   = 65536
	maxEchoRequests  = 65535 // sequence numbers of ICMP
	defaultEchoRate  = 10
	defaultEchoSize  = 56
	defaultScanRate  = 1000
	defaultScanFlows = 5000
	maxScanFlows     = 1_000_000
	maxPacketFlows   = 1024
	maxSessions      = 64
	maxAddresses     = 256
	defaultWriteSize = 64 << 10
	maxGather        = 1 << 20
)

// withDefaults fills in what is left out and checks the rest.
func (l Load) withDefaults() (Load, error) {
	sizes := map[Kind]struct{ def, least, most int }{
		KindStream: {defaultWriteSize, 1, 16 << 20},
		KindRR:     {1, 1, maxTransaction},
		KindCRR:    {1, 1, maxTransaction},
		KindUDP:    {headerSize, headerSize, maxPayload},
		KindEcho:   {defaultEchoSize, 0, maxPayload},
		KindScan:   {0, 0, 0},
	}
	s, ok := sizes[l.Kind]
	if !ok {
		return l, fmt.Errorf("kind of traffic %q: want one of %v", l.Kind, Kinds())
	}
	if l.Size == 0 {
		l.Size = s.def
	}
	if l.Size < s.least || l.Size > s.most {
		return l, fmt.Errorf("size %d of %s: want %d–%d bytes", l.Size, l.Kind, s.least, s.most)
	}
	if l.Warmup < 0 || l.Duration < 0 || l.Rate < 0 {
		return l, errors.New("warm-up, duration and rate must not be negative")
	}
	if err := l.checkStream(); err != nil {
		return l, err
	}
	if l.Kind == KindEcho {
		if l.Rate == 0 {
			l.Rate = defaultEchoRate
		}
		if n := (l.Warmup + l.Duration).Seconds() * l.Rate; n > maxEchoRequests {
			return l, fmt.Errorf("%.0f echo requests: at most %d, lower the rate or the duration", n, maxEchoRequests)
		}
	}
	if l.Kind == KindScan {
		l.Rate, l.Flows = cmp.Or(l.Rate, defaultScanRate), cmp.Or(l.Flows, defaultScanFlows)
	}
	return l, l.checkMany()
}

// checkStream checks the settings that are for streams only, or for packets only.
func (l Load) checkStream() error {
	switch {
	case l.Kind != KindStream && l.Nagle:
		return fmt.Errorf("the algorithm of Nagle is a matter of streams; %s never waits", l.Kind)
	case l.Kind != KindStream && l.Gather != 0:
		return fmt.Errorf("gathering bytes is a matter of streams; %s takes each message as it comes", l.Kind)
	case l.Kind != KindUDP && (l.Buffer != 0 || l.Nap != 0):
		return fmt.Errorf("a buffer or a nap of the sink is a matter of packets, not of %s", l.Kind)
	case l.Buffer < 0 || l.Nap < 0:
		return errors.New("buffer and nap of the sink must not be negative")
	case l.Gather < 0 || l.Gather > maxGather:
		return fmt.Errorf("%d bytes to gather: want 0–%d", l.Gather, maxGather)
	}
	return nil
}

// checkMany checks the settings that are numbers of things.
func (l Load) checkMany() error {
	if l.Kind == KindScan && (l.Flows < 1 || l.Flows > maxScanFlows) {
		return fmt.Errorf("%d flows of a scan: want 1–%d", l.Flows, maxScanFlows)
	}
	if l.Kind == KindUDP && (l.Flows < 0 || l.Flows > maxPacketFlows) {
		return fmt.Errorf("%d flows of packets: want 1–%d", l.Flows, maxPacketFlows)
	}
	several := l.Kind == KindStream || l.Kind == KindRR || l.Kind == KindCRR
	switch {
	case l.Sessions < 0 || l.Sessions > maxSessions:
		return fmt.Errorf("%d sessions: want 1–%d", l.Sessions, maxSessions)
	case l.Addresses < 0 || l.Addresses > maxAddresses:
		return fmt.Errorf("%d addresses of the server: want 1–%d", l.Addresses, maxAddresses)
	case l.Addresses > 1 && l.Kind != KindCRR:
		return fmt.Errorf("%d addresses of the server: %s has one connection", l.Addresses, l.Kind)
	case l.Sessions > 1 && !several:
		return fmt.Errorf("%d sessions of %s: it has one", l.Sessions, l.Kind)
	}
	return nil
}

// unspecified stands for all addresses of a host, in the family of one of them.
func unspecified(like netip.Addr) netip.Addr {
	if like.Unmap().Is4() {
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}

// reached are the addresses of sinks that listen at all of a host's addresses, given one of these.
func reached(sinks []netip.AddrPort, at netip.Addr) []netip.AddrPort {
	all := make([]netip.AddrPort, 0, len(sinks))
	for _, s := range sinks {
		if s.Addr().IsUnspecified() {
			s = netip.AddrPortFrom(at, s.Port())
		}
		all = append(all, s)
	}
	return all
}

// sink is what the other end of the load must be.
func (l Load) sink(at netip.Addr) SinkOptions {
	o := SinkOptions{Kind: l.Kind, At: netip.AddrPortFrom(at, 0)}
	if l.Addresses > 1 {
		o.At = netip.AddrPortFrom(unspecified(at), 0)
	}
	switch {
	case l.Kind == KindRR || l.Kind == KindCRR:
		o.Size = l.Size
	case l.Kind == KindUDP:
		o.Buffer = l.Buffer
		if l.Rate == 0 {
			o.Nap = cmp.Or(l.Nap, fullRateNap)
		}
	case l.Kind == KindStream:
		o.Gather = l.Gather
	}
	return o
}

// Result is the result of one measurement; the field of its kind is set. Times are seconds; CPU time is that of the
// measuring thread alone, user and system.
type Result struct {
	Kind         Kind          `json:"kind"`
	Stream       *Stream       `json:"stream,omitempty"`
	Transactions *Transactions `json:"transactions,omitempty"`
	Sent         *Sent         `json:"sent,omitempty"`
	Echo         *Echo         `json:"echo,omitempty"`
	Scan         *Scanned      `json:"scan,omitempty"`
	// Sink is the other end's counts; nil for echo and scan.
	Sink *SinkResult `json:"sink,omitempty"`
}

// Stream is the sender's view of a TCP stream.
type Stream struct {
	Seconds       float64 `json:"seconds"`
	Bytes         uint64  `json:"bytes"` // acknowledged by the receiver within the interval
	BitsPerSecond float64 `json:"bits_per_second"`
	Retransmits   uint64  `json:"retransmits"` // segments
	Segments      uint64  `json:"segments"`    // with data, as they are on the wire, first and repeated
	Sent          uint64  `json:"sent"`        // bytes of data in these segments
	CPUSeconds    float64 `json:"cpu_s"`
}

// Transactions is the outcome of request/response and connect/request/response.
type Transactions struct {
	Seconds    float64 `json:"seconds"`
	Count      uint64  `json:"count"`
	PerSecond  float64 `json:"per_second"`
	Latency    Latency `json:"latency"`
	CPUSeconds float64 `json:"cpu_s"`
	times      *histogram
}

// Sent is the sender's view of a packet stream.
type Sent struct {
	Seconds          float64 `json:"seconds"`
	Packets          uint64  `json:"packets"`
	PacketsPerSecond float64 `json:"packets_per_second"`
	Refused          uint64  `json:"refused"` // by the sender's own kernel; they have no number
	CPUSeconds       float64 `json:"cpu_s"`
}

// SinkResult is what a sink has received since it was opened.
type SinkResult struct {
	Connections uint64    `json:"connections,omitempty"`
	Broken      uint64    `json:"broken,omitempty"` // connections that did not end between two transactions
	Bytes       uint64    `json:"bytes"`
	CPUSeconds  float64   `json:"cpu_s"`             // for packets: of the measured interval
	Packets     *Received `json:"packets,omitempty"` // the last run of numbered packets
}

// ReceivedPerSecond is the rate at which measured packets arrived, by the sender's clock; 0 without packets.
func (r Result) ReceivedPerSecond() float64 {
	if r.Sent == nil || r.Sink == nil || r.Sink.Packets == nil || r.Sent.Seconds == 0 {
		return 0
	}
	return float64(r.Sink.Packets.Received) / r.Sent.Seconds
}
