package trace

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"heddle/internal/cli"
	"heddle/internal/diagnose"
	"heddle/internal/diagnose/trace"
	"heddle/internal/host/interrupt"
	"heddle/internal/spec/known"
	"heddle/internal/spec/printable"
)

// readCapture reads the frames of the capture file into the request, and the port by which they entered if the command
// line does not name it. notes say what was left out or changed.
func (f *traceFlags) readCapture(ctx context.Context, d cli.Deps, q *diagnose.Request) (notes []string, err error) {
	got, err := f.readFile(ctx, d)
	if err == nil {
		notes, err = f.entered(got, q)
	}
	if err != nil {
		return nil, fmt.Errorf("--pcap %s: %w", f.pcap, err)
	}
	if f.packet > 0 {
		i := slices.Index(got.Numbers, f.packet)
		if i < 0 {
			return nil, fmt.Errorf("--packet %d: %s", f.packet, f.notThere(got))
		}
		q.Packet = i + 1
	}
	q.Frames, f.numbers = got.Frames, got.Numbers
	return append(notes, captureNotes(got)...), nil
}

// readFile reads the capture file.
func (f *traceFlags) readFile(ctx context.Context, d cli.Deps) (*trace.Capture, error) {
	in := d.Stdin
	if f.pcap != "-" {
		file, err := interrupt.Do(ctx, func() (*os.File, error) { return os.Open(f.pcap) })
		if err != nil {
			return nil, err
		}
		defer file.Close()
		in = interrupt.Reader(ctx, file)
	}
	got, err := trace.ReadCapture(in)
	if err != nil && ctx.Err() != nil {
		err = interrupt.ErrInterrupted
	}
	return got, err
}

// entered determines by which port the frames entered the switch.
func (f *traceFlags) entered(got *trace.Capture, q *diagnose.Request) (notes []string, err error) {
	ports := got.Entered()
	named := slices.IndexFunc(ports, func(p string) bool { return p == q.From || strings.HasSuffix(p, "/"+q.From) })
	switch {
	case len(ports) == 0 && q.From == "":
		return nil, fmt.Errorf("the file does not say by which port its frames entered: give the port as the first " +
			"argument")
	case len(ports) > 1 && (named < 0 || q.From == ""):
		return nil, fmt.Errorf("its frames entered by %s: give one of them as the first argument", known.List(ports))
	case len(ports) > 1:
		if n := got.Only(ports[named]); n > 0 {
			notes = append(notes, printable.Count(n, "frame of the file entered elsewhere and is left out",
				"frames of the file entered elsewhere and are left out"))
		}
	case q.From == "":
		q.From = ports[0]
	}
	return notes, nil
}

// notThere returns why no frame with that number is traced.
func (f *traceFlags) notThere(got *trace.Capture) string {
	last := got.Numbers[len(got.Numbers)-1]
	if slices.Contains(got.Long, f.packet) {
		return "the frame is longer than any that can be traced: it stands for several"
	}
	if f.packet < last || got.Out > 0 {
		return fmt.Sprintf("the file has no such frame that entered the switch there; one that it has is %d", last)
	}
	return fmt.Sprintf("the file has %d", len(got.Frames))
}

// captureNotes returns which frames of a file are left out or changed for the trace.
func captureNotes(got *trace.Capture) (notes []string) {
	add := func(n int, one, many string) {
		if n > 0 {
			notes = append(notes, printable.Count(n, one, many))
		}
	}
	add(got.Out, "frame of the file left the switch, or came from the host itself, and is left out",
		"frames of the file left the switch, or came from the host itself, and are left out")
	add(len(got.Long), "frame of the file is longer than any on a cable, so stands for several, and is left out",
		"frames of the file are longer than any on a cable, so stand for several, and are left out")
	add(len(got.Segmented), "frame of the file stands for several: the first of those is traced",
		"frames of the file stand for several each: the first of those is traced")
	add(len(got.Cut), "frame of the file is only there in its beginning: what is missing is taken as zero",
		"frames of the file are only there in their beginning: what is missing is taken as zero")
	if got.More {
		notes = append(notes, fmt.Sprintf("the file has more than %d frames: the others were left out",
			diagnose.MaxFrames))
	}
	return notes
}

// number gives the frames of a report their numbers in the file.
func (f *traceFlags) number(r *diagnose.Report) {
	for i := range r.Frames {
		if n := r.Frames[i].Number; n >= 1 && n <= len(f.numbers) {
			r.Frames[i].Number = f.numbers[n-1]
		}
	}
}
