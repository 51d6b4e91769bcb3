package capture

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"sync"
	"time"

	"heddle/internal/api"
	"heddle/internal/capture/dissect"
	"heddle/internal/capture/pcapng"
	"heddle/internal/cli"
	"heddle/internal/plan"
	"heddle/internal/spec/printable"
)

// sighting is a captured frame with the names of its ports.
type sighting struct {
	*api.CaptureFrame
	host        string // "" where the frames are of one host
	port, other api.CapturePort
}

// where is the port's name, with its host's where there are several.
func (s sighting) where() string { return cli.HostPrefix(s.host) + portAt(s.port, s.Port) }

// portAt is the port's name, with the device of the network between the hosts for outer packets.
func portAt(p api.CapturePort, number uint16) string {
	if p.Device != "" {
		return portName(p, number) + " at " + p.Device
	}
	return portName(p, number)
}

// out reports whether the frame was on its way out of the switch, to the port's owner.
func (s sighting) out() bool { return s.Copy }

// disposition returns the stage, and for a drop the reason.
func (s sighting) disposition() string {
	switch {
	case s.port.Device != "":
		return "outer packet"
	case s.Stage == api.StageDrop:
		return "drop " + s.Reason
	}
	return string(s.Stage)
}

// party returns who sent the frame or gets it, if that is not the port's owner.
func (s sighting) party() string {
	switch {
	case s.port.Device != "":
		return ""
	case s.Made:
		return "made by this host"
	case s.ToHost:
		return "to the host"
	case s.FromHost && (!s.out() || s.Port == s.Other):
		return "from the host"
	case s.FromHost:
		return "from the host behind " + portName(s.other, s.Other)
	case s.out() && s.Port != s.Other:
		return "from " + portName(s.other, s.Other)
	}
	return ""
}

// tunnel returns between which ends of a tunnel the frame goes or came; "" for another frame.
func (s sighting) tunnel() string {
	way, at := "from ", " at "
	if s.out() {
		way, at = "to ", " by "
	}
	switch {
	case !s.Remote.IsValid():
		return ""
	case !s.Local.IsValid():
		return way + s.Remote.String()
	}
	return way + s.Remote.String() + at + s.Local.String()
}

// about are the words about a frame: what became of it, where from and where to, and its segment.
func (s sighting) about() (words []string) {
	for _, w := range []string{s.party(), s.tunnel(), s.Segment.Words()} {
		if w != "" {
			words = append(words, w)
		}
	}
	return words
}

func portName(p api.CapturePort, number uint16) string {
	switch {
	case number == 0:
		return "no uplink" // a copy for the physical network that no uplink could carry
	case p.Name == "":
		return "a port that is gone"
	}
	return p.Name
}

// captureSink writes frames in one format.
type captureSink interface {
	begin(w io.Writer) error
	frame(s sighting) error
	end(c api.CaptureCounts) error
}

// captureOutput writes frames in batches, at most outputDelay after they arrive.
type captureOutput struct {
	mu    sync.Mutex
	buf   *bufio.Writer
	file  io.Closer // nil for standard output
	sink  captureSink
	err   error
	timer *time.Timer
}

// outputDelay is how long a frame may wait before it is shown.
const outputDelay = 50 * time.Millisecond

func newCaptureOutput(w io.Writer, file io.Closer, sink captureSink) (*captureOutput, error) {
	o := &captureOutput{buf: bufio.NewWriterSize(w, 1<<16), file: file, sink: sink}
	return o, sink.begin(o.buf)
}

func (o *captureOutput) frame(s sighting) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.err = o.sink.frame(s)
	}
	if o.timer == nil {
		o.timer = time.AfterFunc(outputDelay, o.flush)
	}
	return o.err
}

func (o *captureOutput) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.timer = nil
	if o.err == nil {
		o.err = o.buf.Flush()
	}
}

// close writes the remaining frames.
func (o *captureOutput) close(c api.CaptureCounts) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.timer != nil {
		o.timer.Stop()
	}
	if o.err == nil {
		o.err = errors.Join(o.sink.end(c), o.buf.Flush())
	}
	err := o.err
	o.err = errors.New("the capture is over") // for a flush that comes too late
	if o.file != nil {
		err = errors.Join(err, o.file.Close())
	}
	return err
}

// lineSink prints one line for each frame.
type lineSink struct {
	out *cli.Stream
	d   cli.Deps
	w   io.Writer
}

func (l *lineSink) begin(w io.Writer) error     { l.w = w; return nil }
func (l *lineSink) end(api.CaptureCounts) error { return nil }
func (l *lineSink) frame(s sighting) (err error) {
	if !l.out.Text() {
		return l.out.Write(l.w, l.object(s))
	}
	arrow, colour := "→", ""
	switch {
	case s.Stage == api.StageDrop:
		arrow, colour = "✗", cli.Red
	case s.out():
		arrow = "←"
	}
	about := append([]string{l.d.Coloured(colour, s.disposition())}, s.about()...)
	_, err = fmt.Fprintf(l.w, "%s  %s %s %s  %s%s\n", s.Time.Local().Format("15:04:05.000000"), s.where(),
		l.d.Coloured(colour, arrow), strings.Join(about, ", "), dissect.Line(s.Data, int(s.Length)),
		segmented(s.SegmentSize))
	return err
}

// capturedFrame is the JSON form of a frame.
type capturedFrame struct {
	Time      time.Time        `json:"time"`
	HostName  string           `json:"hostName,omitempty"` // of the host that captured it, where there are several
	Switch    string           `json:"switch"`
	Port      string           `json:"port"`
	Uplink    bool             `json:"uplink"`
	Direction string           `json:"direction"` // "in" from the port's owner into the switch, or "out"
	Stage     api.CaptureStage `json:"stage,omitempty"`
	Device    string           `json:"device,omitempty"` // of an outer packet, that it left or came by
	Reason    string           `json:"reason,omitempty"`
	From      string           `json:"from,omitempty"` // for a copy: the port that sent it
	Host      string           `json:"host,omitempty"` // "to", "from": the host's own stack has part in it
	Made      bool             `json:"made,omitzero"`  // the tunnel itself answered with it
	// Remote and Local are the ends of the tunnel, of a frame there.
	Remote   netip.Addr   `json:"remote,omitzero"`
	Local    netip.Addr   `json:"local,omitzero"`
	VLAN     plan.Segment `json:"vlan,omitzero"`
	Length   uint32       `json:"length"`
	Captured uint32       `json:"captured"`
	GSOSize  uint32       `json:"gsoSize,omitempty"`
	Summary  string       `json:"summary"`
	Data     []byte       `json:"data"` // base64
}

func (l *lineSink) object(s sighting) capturedFrame {
	o := capturedFrame{
		Time: s.Time.UTC(), HostName: s.host, Switch: s.port.Switch, Port: s.port.Name, Uplink: s.port.Uplink,
		Direction: "in",
		Stage:     s.Stage, Reason: s.Reason,
		VLAN: s.Segment, Length: s.Length, Captured: uint32(len(s.Data)), GSOSize: s.SegmentSize,
		Summary: dissect.Line(s.Data, int(s.Length)), Data: s.Data, Made: s.Made, Device: s.port.Device,
		Remote: s.Remote, Local: s.Local,
	}
	if s.out() {
		o.Direction, o.From = "out", s.other.Name
	}
	switch {
	case s.ToHost:
		o.Host = "to"
	case s.FromHost:
		o.Host = "from"
	}
	return o
}

// segmented describes a frame whose sender left segmentation to the device.
func segmented(size uint32) string {
	if size == 0 {
		return ""
	}
	return fmt.Sprintf(" (in segments of %d)", size)
}

// fileSink writes pcapng.
type fileSink struct {
	snap       int
	w          *pcapng.Writer
	interfaces map[capturedAt]*fileInterface
	order      []*fileInterface
	last       time.Time
}

// capturedAt is a port of a host.
type capturedAt struct {
	host string
	api.CapturePort
}

// fileInterface is a port's interface in the file.
type fileInterface struct {
	number  int
	packets uint64
}

func (f *fileSink) begin(w io.Writer) (err error) {
	f.interfaces = map[capturedAt]*fileInterface{}
	f.w, err = pcapng.NewWriter(w, pcapng.Section{Application: "heddle capture", OS: "Linux"})
	return err
}

func (f *fileSink) of(host string, p api.CapturePort, number uint16) (*fileInterface, error) {
	p.Number = 0 // which may become another's
	at := capturedAt{host, p}
	if i, ok := f.interfaces[at]; ok {
		return i, nil
	}
	what := "port"
	if p.Uplink {
		what = "uplink"
	}
	where := what + " of switch " + p.Switch
	if p.Device != "" {
		where = "outer packets of the tunnel of switch " + p.Switch
	}
	if host != "" {
		where += " on host " + host
	}
	n, err := f.w.Add(pcapng.Interface{Name: cli.HostPrefix(host) + portAt(p, number), Description: where,
		Snap: f.snap})
	if err != nil {
		return nil, err
	}
	i := &fileInterface{number: n}
	f.interfaces[at], f.order = i, append(f.order, i)
	return i, nil
}

func (f *fileSink) frame(s sighting) error {
	i, err := f.of(s.host, s.port, s.Port)
	if err != nil {
		return err
	}
	i.packets++
	f.last = s.Time
	way := pcapng.Inbound
	if s.out() {
		way = pcapng.Outbound
	}
	return f.w.Packet(pcapng.Packet{Interface: i.number, Time: f.last, Direction: way, Comment: comment(s),
		Length: int(s.Length), Data: s.Data})
}

// comment returns the packet's comment: port, direction, disposition, and what else is known.
func comment(s sighting) string {
	way := "in"
	if s.out() {
		way = "out"
	}
	words := append([]string{"port " + portAt(s.port, s.Port), way, s.disposition()}, s.about()...)
	if s.SegmentSize > 0 {
		words = append(words, fmt.Sprintf("in segments of %d", s.SegmentSize))
	}
	return strings.Join(words, ", ")
}

// end writes the statistics. It is unknown which port's frames were lost: they are counted at the first interface.
func (f *fileSink) end(c api.CaptureCounts) error {
	if len(f.order) == 0 && c.Lost > 0 {
		if _, err := f.of("", api.CapturePort{}, 1); err != nil {
			return err
		}
	}
	lost := c.Lost
	for _, i := range f.order {
		s := pcapng.Statistics{Interface: i.number, Time: f.last, Received: i.packets + lost, Dropped: lost}
		if lost > 0 {
			s.Comment = printable.Count(lost,
				"frame of all interfaces was lost because it came faster than it was read",
				"frames of all interfaces were lost because they came faster than they were read")
		}
		if err := f.w.Statistics(s); err != nil {
			return err
		}
		lost = 0
	}
	return nil
}
