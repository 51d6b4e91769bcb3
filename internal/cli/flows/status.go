package flows

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/spec/printable"
)

func newFlowsStatus(d cli.Deps, t *cli.Target) *cobra.Command {
	o := &cli.Output{}
	c := &cobra.Command{
		Use: "status", Short: "Show the state of metering and export: tables, losses, collectors",
		Example: "  heddle flows status\n  heddle flows status -o json", Args: cli.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			s, err := cli.Ask(c, t, func(ctx context.Context, s api.Service) (*api.FlowStatus, error) {
				return s.FlowStatus(ctx)
			})
			if err != nil {
				return err
			}
			return o.Print(d, s, func(w io.Writer) error { return flowStatus(w, s) })
		},
	}
	t = t.Looking(d, c)
	o.Flag(c)
	return c
}

func flowStatus(w io.Writer, s *api.FlowStatus) error {
	tab := cli.Numbers([]string{"SWITCH"}, []string{"METERED", "FLOWS", "MAX FLOWS", "RECORDS", "PACKETS", "IN RECORDS",
		"NO ROOM"})
	var problems []string
	for _, sw := range s.Switches {
		tab.Add(sw.Switch, strconv.Itoa(sw.Metered), strconv.Itoa(sw.Flows), strconv.Itoa(sw.MaxFlows),
			strconv.FormatUint(sw.Records, 10),
			strconv.FormatUint(sw.Counted.Packets, 10), strconv.FormatUint(sw.InRecords.Packets, 10),
			strconv.FormatUint(sw.Overflow.Packets, 10))
		if text := sampled(sw.SamplingRate); text != "" {
			problems = append(problems, "switch "+sw.Switch+": "+text)
		}
		if sw.Problem != "" {
			problems = append(problems, "switch "+sw.Switch+": "+sw.Problem)
		}
	}
	if err := tab.Write(w); err != nil {
		return err
	}
	if err := flowCollectors(w, s); err != nil {
		return err
	}
	if err := flowLosses(w, s); err != nil {
		return err
	}
	if !s.Note.None() {
		problems = append(problems, s.Note.Text)
	}
	for _, p := range problems {
		if _, err := fmt.Fprintln(w, p); err != nil {
			return err
		}
	}
	return nil
}

// flowCollectors shows the collectors, and below the table why some receive nothing.
func flowCollectors(w io.Writer, s *api.FlowStatus) error {
	tab := cli.Numbers([]string{"COLLECTOR", "SHAPE", "STATE", "ADDRESS"}, []string{"MESSAGES", "RECORDS", "LOST"})
	tab.Keep[2] = true
	var below []string
	sending := false
	for _, sw := range s.Switches {
		for _, c := range sw.Collectors {
			tab.Add(c.Collector, c.Shape, c.State, cli.Dash(c.Address), strconv.FormatUint(c.Messages, 10),
				strconv.FormatUint(c.Records, 10), strconv.FormatUint(c.Lost, 10))
			if text := flowUnsure(c); text != "" {
				below = append(below, "collector "+c.Collector+" of switch "+sw.Switch+": "+text)
			}
			if c.LastError != "" {
				below = append(below, "collector "+c.Collector+" of switch "+sw.Switch+": "+c.LastError)
			}
			if text := lostSince(c); text != "" {
				below = append(below, "collector "+c.Collector+" of switch "+sw.Switch+": "+text)
			}
			sending = sending || c.State == api.CollectorSending && c.Transport == "udp"
		}
	}
	if len(tab.Rows) == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	if err := tab.Write(w); err != nil {
		return err
	}
	if sending {
		below = append(below, "sending: nothing was refused; UDP does not say whether records arrive")
	}
	for _, line := range below {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

// flowUnsure returns how much is queued for a collector over TCP or TLS, and for how much it is unknown whether it
// arrived; "" for nothing.
func flowUnsure(c api.FlowCollector) string {
	var parts []string
	if c.Waiting > 0 && c.State != api.CollectorSending {
		parts = append(parts, printable.Count(c.Waiting, "record waits for it", "records wait for it"))
	}
	if c.Unsure > 0 {
		parts = append(parts, printable.Count(c.Unsure, "record", "records")+" may have arrived, once or twice, or be "+
			"missing: connections broke off")
	}
	return strings.Join(parts, "; ")
}

// lostSince returns since when records were lost, "" if none was.
func lostSince(c api.FlowCollector) string {
	if c.Lost == 0 {
		return ""
	}
	text := printable.Count(c.Lost, "record", "records") + " lost"
	if !c.LostSince.IsZero() {
		text += " since " + c.LostSince.Local().Format(time.DateTime)
	}
	if !c.LastLost.IsZero() {
		text += ", the last at " + c.LastLost.Local().Format(time.DateTime)
	}
	return text
}

// flowLosses shows the ports at which something could not be recorded.
func flowLosses(w io.Writer, s *api.FlowStatus) error {
	tab := cli.Numbers([]string{"SWITCH", "PORT"}, []string{"NOT RECORDED", "BYTES", "FRAME BYTES"})
	for _, sw := range s.Switches {
		for _, l := range sw.Losses {
			tab.Add(sw.Switch, seenAt(api.Flow{Port: l.Port, Uplink: l.Uplink}), strconv.FormatUint(l.Packets, 10),
				strconv.FormatUint(l.Bytes, 10), strconv.FormatUint(l.FrameBytes, 10))
		}
	}
	if len(tab.Rows) == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	return tab.Write(w)
}
