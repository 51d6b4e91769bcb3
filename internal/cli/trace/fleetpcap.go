package trace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/diagnose"
	"heddle/internal/diagnose/across"
	"heddle/internal/diagnose/trace"
	"heddle/internal/spec/known"
	"heddle/internal/spec/printable"
)

// FleetFileTrace is the trace of a capture file's frames, each on its host.
type FleetFileTrace struct {
	Frames []FleetFrame `json:"frames"`
	Notes  []string     `json:"notes,omitempty"`
	// Agree says that model and kernel program agree on every frame.
	Agree bool `json:"agree"`
}

// FleetFrame is a frame, and the host and port at which it entered.
type FleetFrame struct {
	Host string `json:"host"`
	From string `json:"from"`
	diagnose.Frame
}

// entry is a port of a host by which frames of a file entered.
type entry struct {
	host, port string
	frames     [][]byte
	numbers    []int
}

// file traces the frames of a capture file, each from where it entered: the file of a capture on several hosts says
// which host that is.
func (x *fleetTrace) file(f *traceFlags) error {
	if f.to != "" {
		return cli.Usagef("with --pcap the file says where each frame goes: leave out TO, or name one host with --host")
	}
	got, err := f.readFile(x.c.Context(), x.d)
	var entries []*entry
	var notes []string
	if err == nil {
		entries, notes, err = x.entries(got, f.from)
	}
	if err != nil {
		return fmt.Errorf("--pcap %s: %w", f.pcap, err)
	}
	notes = append(notes, captureNotes(got)...)
	if f.packet > 0 {
		return x.packet(f, got, entries, notes)
	}
	out := FleetFileTrace{Frames: []FleetFrame{}, Notes: notes, Agree: true}
	for _, e := range entries {
		if x.isAway(e.host) { // which is said below
			continue
		}
		r, err := cli.Ask(x.c, x.t.On(e.host), func(ctx context.Context, s api.Service) (*diagnose.Report, error) {
			return s.Trace(ctx, diagnose.Request{From: e.port, Frames: e.frames})
		})
		if err != nil && errors.Is(err, api.ErrAway) {
			x.away.Add(e.host, err)
			continue
		}
		if err != nil {
			return err
		}
		(&traceFlags{numbers: e.numbers}).number(r)
		for _, fr := range r.Frames {
			out.Frames = append(out.Frames, FleetFrame{e.host, e.port, fr})
		}
		out.Agree = out.Agree && r.Agree
		for _, n := range r.Notes {
			out.Notes = append(out.Notes, e.host+": "+n)
		}
	}
	slices.SortStableFunc(out.Frames, func(a, b FleetFrame) int { return cmp.Compare(a.Number, b.Number) })
	err = x.o.Print(x.d, out, func(w io.Writer) error { return x.printFile(w, out) })
	if err == nil && !out.Agree {
		err = &cli.SilentError{Status: cli.ExitFailure}
	}
	return errors.Join(err, x.away.Report(x.d))
}

// packet traces one frame of the file in full.
func (x *fleetTrace) packet(f *traceFlags, got *trace.Capture, entries []*entry, notes []string) error {
	for _, e := range entries {
		if i := slices.Index(e.numbers, f.packet); i >= 0 {
			f.numbers = e.numbers
			return traceOn(x.d, x.c, x.t.On(e.host), x.o, f, diagnose.Request{From: e.port, Frames: e.frames,
				Packet: i + 1}, append(notes, "on host "+e.host))
		}
	}
	return fmt.Errorf("--pcap %s: --packet %d: %s", f.pcap, f.packet, f.notThere(got))
}

// entries are the ports by which the frames entered, in the order of the file: those that it names, or from.
func (x *fleetTrace) entries(got *trace.Capture, from string) (list []*entry, notes []string, err error) {
	var only *across.Station
	if from != "" {
		s, err := x.end(from)
		if err != nil {
			return nil, nil, err
		}
		only = &s
	}
	if got.Ports == nil && only == nil {
		return nil, nil, errors.New("the file does not say by which port its frames entered: give the port as the " +
			"first argument")
	}
	at, left := map[string]*entry{}, 0
	for i, frame := range got.Frames {
		e, err := x.entered(got, i, only, at)
		if err != nil {
			return nil, nil, err
		}
		if only != nil && (e.host != only.Host || e.port != only.Port) {
			left++
			continue
		}
		if len(e.frames) == 0 {
			list = append(list, e)
		}
		e.frames, e.numbers = append(e.frames, frame), append(e.numbers, got.Numbers[i])
	}
	if left > 0 {
		notes = append(notes, printable.Count(left, "frame of the file entered elsewhere and is left out",
			"frames of the file entered elsewhere and are left out"))
	}
	return list, notes, nil
}

// entered is where a frame entered. at has those that were found before.
func (x *fleetTrace) entered(got *trace.Capture, i int, only *across.Station, at map[string]*entry) (*entry, error) {
	name := ""
	if got.Ports != nil {
		name = got.Ports[i]
	}
	if e := at[name]; e != nil {
		return e, nil
	}
	host, port, ok := strings.Cut(name, ":")
	switch {
	case name == "":
		at[name] = &entry{host: only.Host, port: only.Port}
	case ok && (x.isHost(host) || x.isAway(host)):
		at[name] = &entry{host: host, port: port}
	default: // of a capture on one host: whichever has the port
		s, err := x.end(name)
		if err != nil {
			return nil, err
		}
		at[name] = &entry{host: s.Host, port: s.Port}
	}
	return at[name], nil
}

func (x *fleetTrace) isAway(name string) bool {
	return slices.ContainsFunc(x.away.Hosts, func(h api.FleetHost) bool { return h.Name == name })
}

// printFile shows what becomes of the frames of a file.
func (x *fleetTrace) printFile(w io.Writer, t FleetFileTrace) error {
	head := []string{"PACKET", "HOST", "FROM", "BYTES", "OUTCOME", "TO", "FRAME"}
	tab := &cli.Table{Head: head, Right: cli.Columns(head, "PACKET", "BYTES"), Keep: cli.Columns(head, "OUTCOME"),
		Names: cli.Columns(head, "HOST", "FROM")}
	var differ []string
	for _, f := range t.Frames {
		outcome, to := "delivered", make([]string, 0, len(f.Copies))
		if !f.Delivered {
			outcome = f.Reason
		}
		for _, c := range f.Copies {
			to = append(to, c.To)
		}
		tab.Add(fmt.Sprint(f.Number), f.Host, known.Shown(f.From), fmt.Sprint(f.Length), outcome,
			cli.Dash(strings.Join(to, ",")), f.Summary)
		for _, line := range f.Differences {
			differ = append(differ, fmt.Sprintf("packet %d: %s", f.Number, line))
		}
	}
	if err := tab.Write(w); err != nil {
		return err
	}
	l := &lines{w: w, d: x.d}
	l.kernel(agreement(differ), differ)
	l.blank()
	l.add(0, "", 0, "one of them in full: --packet N")
	for _, n := range t.Notes {
		l.add(0, "note:", 6, n)
	}
	return l.err
}
