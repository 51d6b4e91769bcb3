package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/plan"
	"heddle/internal/spec/known"
)

func newSwitch(d Deps) *cobra.Command {
	t := &target{}
	c := group("switch", "Show the switches of this host", "  heddle switch list\n  heddle switch show lab")
	c.Long = "Show the switches of this host. A switch is added, changed or removed by the configuration file: edit " +
		"it, then run \"heddle apply -f FILE\"; --dry-run shows what that means for ports."
	t.flags(d, c)
	c.AddCommand(newSwitchList(d, t), newSwitchShow(d, t))
	return c
}

func newSwitchList(d Deps, t *target) *cobra.Command {
	return listing[api.Switch]{
		what: "the switches", example: "  heddle switch list\n  heddle switch list -o json",
		of: func(s *api.State) []api.Switch { return s.Switches },
		table: func() *table {
			return &table{head: []string{"SWITCH", "KIND", "MTU", "PORT GROUPS", "PORTS UP", "UPLINKS UP", "UPLINKS"},
				right: map[int]bool{2: true, 3: true}}
		},
		row: func(sw api.Switch) []string {
			return []string{sw.Name, string(sw.Kind), strconv.Itoa(sw.MTU), strconv.Itoa(sw.PortGroups),
				of(sw.PortsUp, sw.Ports),
				of(sw.UplinksUp, len(sw.Uplinks)), dash(strings.Join(sw.Uplinks, ","))}
		},
	}.command(d, t)
}

func of(up, all int) string { return fmt.Sprintf("%d of %d", up, all) }

func newSwitchShow(d Deps, t *target) *cobra.Command {
	o := &output{}
	c := &cobra.Command{
		Use: "show SWITCH", Short: "Show one switch", Example: "  heddle switch show lab", Args: exactly("SWITCH"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			s, err := t.state(c)
			if err != nil {
				return err
			}
			sw, err := pick(s.Switches, known.Names{What: "switch"}, args[0], "", func(v api.Switch) (string, string) {
				return v.Name, v.Name
			})
			if err != nil {
				return err
			}
			return o.print(d, sw, func(w io.Writer) error {
				rows := [][2]string{
					{"switch", sw.Name}, {"kind", string(sw.Kind)}, {"mtu", strconv.Itoa(sw.MTU)},
					{"port groups", strconv.Itoa(sw.PortGroups)}, {"ports up", of(sw.PortsUp, sw.Ports)},
					{"uplinks", strings.Join(sw.Uplinks, ", ")}, {"uplinks up", of(sw.UplinksUp, len(sw.Uplinks))},
					{"checks.reversePath", strconv.FormatBool(sw.ReversePath)},
					{"checks.reversePathPromiscuous", strconv.FormatBool(sw.ReversePathPromiscuous)},
					{"checks.blockGuestBPDU", strconv.FormatBool(sw.BlockGuestBPDU)},
				}
				return properties(w, append(rows, ipfixProperties(sw.IPFIX)...))
			})
		},
	}
	o.flag(c)
	return c
}

// ipfixProperties are the settings in the words of the configuration file.
func ipfixProperties(x *api.IPFIX) [][2]string {
	if x == nil {
		return nil
	}
	collectors := make([]string, len(x.Collectors))
	for i, c := range x.Collectors {
		collectors[i] = c.String()
	}
	rows := [][2]string{
		{"ipfix.collectors", cmp.Or(strings.Join(collectors, ", "), "none")},
		{"ipfix.observationDomainId", strconv.FormatUint(uint64(x.ObservationDomainID), 10)},
		{"ipfix.switchIpAddress", x.SwitchIPAddress},
		{"ipfix.activeFlowTimeout", period(x.ActiveFlowTimeoutSeconds)},
		{"ipfix.idleFlowTimeout", period(x.IdleFlowTimeoutSeconds)},
		{"ipfix.samplingRate", strconv.Itoa(x.SamplingRate)},
		{"ipfix.internalFlowsOnly", strconv.FormatBool(x.InternalFlowsOnly)},
		{"ipfix.biflow", strconv.FormatBool(x.Biflow)}, {"ipfix.templates.every", period(x.TemplatesEverySeconds)},
		{"ipfix.templates.packets", strconv.Itoa(x.TemplatesPackets)}, {"ipfix.maxFlows", strconv.Itoa(x.MaxFlows)},
		{"ipfix.mtu", number(x.MTU)},
	}
	return slices.DeleteFunc(rows, func(r [2]string) bool { return r[1] == "" }) // what has no default and is not set
}

// period is a duration as the configuration file writes it: "10m".
func period(seconds float64) string {
	return plan.FieldValueOf(time.Duration(seconds * float64(time.Second))).String()
}
