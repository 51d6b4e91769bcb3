package network

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
	"heddle/internal/cli"
	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/spec/known"
)

func NewSwitch(d cli.Deps) *cobra.Command {
	t := &cli.Target{}
	c := cli.Group("switch", "Show the switches of this host", "  heddle switch list\n  heddle switch show lab")
	c.Long = "Show the switches of this host. A switch is added, changed or removed by the configuration file: edit " +
		"it, then run \"heddle apply -f FILE\"; --dry-run shows what that means for ports."
	t.Flags(d, c)
	c.AddCommand(newSwitchList(d, t), newSwitchShow(d, t))
	return c
}

func newSwitchList(d cli.Deps, t *cli.Target) *cobra.Command {
	return cli.Listing[api.Switch]{
		What: "the switches", Example: "  heddle switch list\n  heddle switch list -o json",
		Of: func(s *api.State) []api.Switch { return s.Switches },
		Table: func() *cli.Table {
			return &cli.Table{Head: []string{"SWITCH", "KIND", "MTU", "PORT GROUPS", "PORTS UP", "UPLINKS UP",
				"UPLINKS"},
				Right: map[int]bool{2: true, 3: true}}
		},
		Row: func(sw api.Switch) []string {
			return []string{sw.Name, string(sw.Kind), strconv.Itoa(sw.MTU), strconv.Itoa(sw.PortGroups),
				cli.OutOf(sw.PortsUp, sw.Ports),
				cli.OutOf(sw.UplinksUp, len(sw.Uplinks)), cli.Dash(strings.Join(sw.Uplinks, ","))}
		},
	}.Command(d, t)
}

func newSwitchShow(d cli.Deps, t *cli.Target) *cobra.Command {
	o := &cli.Output{}
	c := &cobra.Command{
		Use: "show SWITCH", Short: "Show one switch",
		Example: "  heddle switch show lab\n  heddle switch show lab -o yaml\n  heddle --context lab switch show dvs",
		Args:    cli.Exactly("SWITCH"),
		Long: "Show one switch: its uplinks and LAGs with their states, its checks, and what of its flow export " +
			"(ipfix) is not as it is by default. -o json and yaml have every setting.\n\nWith --controller it is the " +
			"switch as all hosts have it: its settings, how many hosts, ports and uplinks it has, and which hosts " +
			"differ from the others.",
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			if all, err := t.Everywhere(); err != nil {
				return err
			} else if all {
				return switchEverywhere(d, c, t, o, args[0])
			}
			s, err := t.State(c)
			if err != nil {
				return err
			}
			sw, err := switchOf(s, args[0])
			if err != nil {
				return err
			}
			return o.Print(d, sw, func(w io.Writer) error {
				rows := [][2]string{
					{"switch", sw.Name}, {"kind", string(sw.Kind)}, {"mtu", strconv.Itoa(sw.MTU)},
					{"port groups", strconv.Itoa(sw.PortGroups)}, {"ports up", cli.OutOf(sw.PortsUp, sw.Ports)},
					{"uplinks", strings.Join(uplinkStates(s, sw.Name), ", ")},
					{"lags", strings.Join(lagStates(s, sw.Name), ", ")},
				}
				return cli.Properties(w, append(rows, switchChecks(sw)...))
			})
		},
	}
	t = t.Looking(d, c)
	o.Flag(c)
	return c
}

// switchOf finds a switch by its name.
func switchOf(s *api.State, name string) (api.Switch, error) {
	return cli.Pick(s.Switches, known.Names{What: "switch"}, name, "", func(v api.Switch) (string, string) {
		return v.Name, v.Name
	})
}

// switchChecks are the settings of a switch that have lines of their own: its checks, and what of its flow export is
// not as by default.
func switchChecks(sw api.Switch) [][2]string {
	return append([][2]string{{"checks.reversePath", strconv.FormatBool(sw.ReversePath)},
		{"checks.reversePathPromiscuous", strconv.FormatBool(sw.ReversePathPromiscuous)},
		{"checks.blockGuestBPDU", strconv.FormatBool(sw.BlockGuestBPDU)}}, ipfixProperties(sw.IPFIX)...)
}

// uplinkStates returns the uplinks of a switch with their states: "uplink1 (up, 25 Gb/s)".
func uplinkStates(s *api.State, sw string) (list []string) {
	for _, u := range s.Uplinks {
		if u.Switch != sw {
			continue
		}
		text := u.Name + " (" + string(u.State)
		if u.Speed > 0 {
			text += ", " + speedText(u.Speed)
		}
		list = append(list, text+")")
	}
	return list
}

// lagStates returns the LAGs of a switch: "lag1 (degraded, 1 of 2 used: uplink1, uplink2)".
func lagStates(s *api.State, sw string) (list []string) {
	for _, l := range lags(s) {
		if l.Switch == sw {
			list = append(list, fmt.Sprintf("%s (%s, %s used: %s)", l.Name, l.State, cli.OutOf(l.used(),
				len(l.Members)),
				strings.Join(memberNames(l), ", ")))
		}
	}
	return list
}

// ipfixProperties returns the settings in the words of the configuration file: the collectors, and settings that differ
// from their default.
func ipfixProperties(x *api.IPFIX) [][2]string {
	if x == nil {
		return nil
	}
	defaults := ipfixSettings(DefaultIPFIX())
	rows := [][2]string{{"ipfix.collectors", cmp.Or(cli.Joined(x.Collectors, ", "), "none")}}
	return append(rows, slices.DeleteFunc(ipfixSettings(x), func(r [2]string) bool {
		return slices.Contains(defaults, r)
	})...)
}

// DefaultIPFIX returns the settings of a switch whose file sets none.
func DefaultIPFIX() *api.IPFIX {
	p, err := plan.ResolveValid(&spec.Config{Switches: []spec.Switch{{Name: "default"}}}, nil)
	if err != nil { // then every setting is shown
		return &api.IPFIX{}
	}
	return api.IPFIXOf(p.Switches[0].IPFIX)
}

func ipfixSettings(x *api.IPFIX) [][2]string {
	return [][2]string{
		{"ipfix.observationDomainId", strconv.FormatUint(uint64(x.ObservationDomainID), 10)},
		{"ipfix.switchIpAddress", x.SwitchIPAddress},
		{"ipfix.activeFlowTimeout", period(x.ActiveFlowTimeoutSeconds)},
		{"ipfix.idleFlowTimeout", period(x.IdleFlowTimeoutSeconds)},
		{"ipfix.samplingRate", strconv.Itoa(x.SamplingRate)},
		{"ipfix.internalFlowsOnly", strconv.FormatBool(x.InternalFlowsOnly)},
		{"ipfix.biflow", strconv.FormatBool(x.Biflow)}, {"ipfix.templates.every", period(x.TemplatesEverySeconds)},
		{"ipfix.templates.packets", strconv.Itoa(x.TemplatesPackets)}, {"ipfix.maxFlows", strconv.Itoa(x.MaxFlows)},
		{"ipfix.mtu", cli.Number(x.MTU)},
	}
}

// period returns a duration as the configuration file writes it: "10m".
func period(seconds float64) string {
	return plan.FieldValueOf(time.Duration(seconds * float64(time.Second))).String()
}
