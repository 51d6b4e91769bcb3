package cli

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"heddle/internal/api"
	"heddle/internal/plan"
	"heddle/internal/spec/known"
)

// InFlags rewrites the agent's faults about a port in the words of the command line: the agent names
// ports[vm7/eth0].portGroup, as in a configuration file, but the user wrote --port-group.
func InFlags(c *cobra.Command, port string, err error) error {
	var answer *api.Error
	if !errors.As(err, &answer) {
		return err
	}
	own := *answer
	own.Lines = make([]string, len(answer.Lines))
	for i, line := range answer.Lines {
		own.Lines[i] = lineInFlags(c, port, line)
	}
	return &own
}

// lineInFlags returns one fault in the command line's words; a fault about anything else is unchanged.
func lineInFlags(c *cobra.Command, port, line string) string {
	rest, ok := strings.CutPrefix(line, "ports["+port+"].")
	if !ok {
		return line
	}
	path, message, ok := strings.Cut(rest, ": ")
	if !ok {
		return line
	}
	flag := c.Flags().Lookup(flagOf(path))
	if flag == nil {
		return fmt.Sprintf("port %s: %s", known.Shown(port), rest)
	}
	for _, value := range valuesOf(flag) {
		if shown := known.Shown(value); strings.HasPrefix(message, shown+": ") {
			return fmt.Sprintf("--%s %s", flag.Name, message)
		}
	}
	return fmt.Sprintf("--%s: %s", flag.Name, message)
}

// listIndex is the index of an element in a list: active[0].
var listIndex = regexp.MustCompile(`\[[^\]]*\]`)

// flagOf returns the flag of "heddle port" for a field of a port in the configuration file, "" if there is none.
func flagOf(path string) string {
	path = listIndex.ReplaceAllString(path, "")
	for _, f := range plan.Fields() {
		if f.Path == path && f.Flag != "" {
			return f.Flag
		}
	}
	switch path {
	case "portGroup":
		return PortGroup
	case "addresses":
		return "address"
	case "txUplink":
		return "tx-uplink"
	case "monitor.socket":
		return "qmp"
	case "monitor.nic":
		return "qmp-nic"
	case "vlan", "vlan.access", "vlan.none":
		return "vlan"
	case "vlan.trunk":
		return "trunk"
	case "vlan.outer":
		return "qinq"
	case "switch", "device", "mac", "role", "owner", "domain", "mtu":
		return path
	}
	return ""
}

// valuesOf returns the values that a flag was given.
func valuesOf(f *pflag.Flag) []string {
	if list, ok := f.Value.(pflag.SliceValue); ok {
		return append(list.GetSlice(), f.Value.String())
	}
	return []string{f.Value.String()}
}
