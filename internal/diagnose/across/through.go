package across

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"

	"heddle/internal/diagnose"
)

// otherEndpoint is what a host says of a packet that is for an endpoint of another one.
const otherEndpoint = "other-endpoint"

// through lets the frame come to the host of the receiver in each packet in which it leaves by the tunnel, until one is
// for that host.
func (l *Leg) through(ctx context.Context, ask Ask, from, to Station, out diagnose.Copy) error {
	b, err := hex.DecodeString(out.Bytes)
	if err != nil || len(b) == 0 {
		return fmt.Errorf("host %s does not say how the frame leaves", from.Host)
	}
	var others []string
	for _, o := range out.Leaves() {
		r, err := ask(ctx, to.Host, diagnose.Request{From: to.Switch + "/" + out.To, To: to.Port, Frames: [][]byte{b},
			Through: &diagnose.Through{VNI: o.VNI, Source: o.Source, Destination: o.Destination}})
		if err != nil {
			return err
		}
		if len(r.Frames) == 1 && r.Frames[0].Reason == otherEndpoint {
			others = append(others, o.Receiver())
			continue
		}
		l.Outer = &o
		l.Received = []Arrival{{Uplink: out.To, Counts: true, Report: r}}
		l.Network = fmt.Sprintf("not known: the packet leaves %s from %s to %s, in VNI %d; it is taken to come to %s "+
			"unchanged", from.Host, o.Source, o.Destination, o.VNI, to.Host)
		way := fmt.Sprintf("leaves by %s, VNI %d, from %s to %s", out.To, o.VNI, o.Source, o.Destination)
		if reaches(r, to.Port) {
			l.Verdict, l.Path = diagnose.Yes, way+"; comes in by "+out.To
			return nil
		}
		l.Host, l.Path, l.Reason = to.Host, way+"; ends on "+to.Host, reasonOf(r)
		return nil
	}
	l.Host, l.Reason = from.Host, otherEndpoint
	l.Path = fmt.Sprintf("leaves by %s to %s: none of them is of %s", out.To, strings.Join(others, ", "), to.Host)
	return nil
}
