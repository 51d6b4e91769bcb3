package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"heddle/internal/api"
)

func newFlowsWatch(d Deps, t *target) *cobra.Command {
	f, format := api.FlowFilter{}, ""
	c := &cobra.Command{
		Use: "watch", Short: "Follow the flow records as they are made",
		Long: "Prints every flow record when it is made, until interrupted: when a flow ended (idle, end), again and again while it lasts\n" +
			"(active), when its port goes or metering stops (forced), and when the agent's table had no room for it (no-resources). Counts\n" +
			"are those since the flow's record before.",
		Example: "  heddle flows watch\n  heddle flows watch --port vm1/eth0 -o json", Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if format != "text" && format != "json" {
				return usagef("output format %q: use text, or json for one object a line", format)
			}
			client, err := t.client()
			if err != nil {
				return err
			}
			out := json.NewEncoder(d.Stdout)
			err = client.FlowRecords(c.Context(), f, func(b api.FlowRecords) error {
				if b.Missed > 0 {
					fmt.Fprintf(d.Stderr, "%d records came faster than they were taken and are missing here\n", b.Missed)
				}
				for i := range b.Records {
					if format == "json" {
						err = out.Encode(&b.Records[i])
					} else {
						err = flowRecordLine(d, &b.Records[i])
					}
					if err != nil {
						return err
					}
				}
				return nil
			})
			if err == nil && c.Context().Err() == nil {
				fmt.Fprintln(d.Stderr, "the agent has ended")
			}
			return err
		},
	}
	c.Flags().StringVarP(&format, "output", "o", "text", "output format: text, or json: one object a line")
	flowFilterFlags(c, &f)
	return c
}

func flowRecordLine(d Deps, r *api.FlowRecord) error {
	_, err := fmt.Fprintf(d.Stdout, "%s  %-12s  %s %s %s  %s → %s  %d packets, %d bytes in %s", r.Last.Local().Format("2006-01-02 15:04:05.000"), r.Reason, seenAt(r.Flow),
		r.Direction, protocolText(r.Flow), flowEnd(r.Source, r.SourceMAC, r.SourcePort), flowEnd(r.Destination, r.DestinationMAC, r.DestinationPort),
		r.Packets, r.Bytes, r.Last.Sub(r.First))
	if err == nil && r.Reverse != nil {
		_, err = fmt.Fprintf(d.Stdout, "; back %d packets, %d bytes", r.Reverse.Packets, r.Reverse.Bytes)
	}
	if err == nil && r.TCPFlags != "" {
		_, err = fmt.Fprintf(d.Stdout, "; %s", r.TCPFlags)
	}
	if err == nil {
		_, err = fmt.Fprintln(d.Stdout)
	}
	return err
}
