package tree

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"heddle/internal/abi"
	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/cli/capture"
	"heddle/internal/cli/contexts"
	"heddle/internal/lab"
	"heddle/internal/lab/cmd"
	"heddle/internal/lab/experiment"
	"heddle/internal/plan"
)

// argumentSource returns the names for an argument of a command, by the argument's word in the use line; nil for an
// argument without existing names, such as a port that will be made.
func argumentSource(path, word string) cli.Source {
	switch path + " " + word {
	case "heddle port connect PORT", "heddle libvirt-hook DOMAIN", "heddle host join HOST", "heddle host join PORT":
		return nil
	case "heddle stats PORT":
		return both(ports, uplinkNames)
	case "heddle capture PORT":
		return both(ports, uplinkNames, cli.Words(capture.AnyPort))
	case "heddle host-port show PORT", "heddle host-port confirm PORT", "heddle host-port release PORT":
		return hostPorts
	case "heddle uplink drain UPLINK", "heddle uplink block UPLINK", "heddle uplink restore UPLINK":
		return both(uplinkNames, lagNames)
	case "heddle port disconnect PORT":
		return runTimePorts
	case "heddle context use NAME", "heddle context remove NAME", "heddle logout [CONTEXT]":
		return contextNames
	case "heddle context add NAME":
		return nil
	}
	switch word {
	case "PORT":
		return ports
	case "FROM", "TO":
		return both(ports, uplinkNames)
	case "PORT-GROUP":
		return portGroups
	case "SWITCH":
		return switchNames
	case "UPLINK":
		return uplinkNames
	case "LAG":
		return lagNames
	case "MAC":
		return macAddresses
	case "HOST":
		return fleetHosts
	case "DEVICE":
		return uplinkDevices
	case "SCENARIO":
		return both(cli.Words(experiment.ScenarioNames()...), experimentRows)
	case "EXPERIMENT":
		return experimentNames
	case "LAB", "NAME":
		return labNames
	case "NODE":
		return labNodes
	case "COMMAND":
		return cli.Words("heddle")
	case "OPERATION":
		return cli.Words("prepare", "start", "started", "stopped", "release", "migrate", "restore", "reconnect",
			"attach")
	}
	return nil
}

// flagSource returns the names for a flag's value; nil if they are not known. Flags of a single command have their
// source in that command's file.
func flagSource(path, flag string) cli.Source {
	switch path + " --" + flag {
	case "heddle port connect --device":
		return hostDevices
	case "heddle trace --to":
		return both(ports, uplinkNames)
	case "heddle port disconnect --device":
		return runTimeDevices
	case "heddle host-port adopt --name", "heddle lab up --name", "heddle host join --name",
		"heddle access token create --name":
		return nil
	case "heddle access token create --role":
		return cli.Words("viewer", "operator", "admin")
	}
	if f, ok := plan.FieldOfFlag(flag); ok {
		return fieldWords(f)
	}
	switch flag {
	case cli.PortGroup:
		return portGroups
	case "switch":
		return switchNames
	case "uplink":
		return uplinkNames
	case "port", "from":
		return both(ports, uplinkNames)
	case "to":
		return ports
	case "agent":
		return agentNames
	case "host":
		return fleetHosts
	case "context":
		return contextNames
	case "owner":
		return owners
	case "role":
		return cli.Words("vnic", "host")
	case "vlan":
		return vlanWords(path)
	case "reason":
		return cli.Words(reasonNames()...)
	case "stage":
		return cli.Words(api.Stages()...)
	case "protocol":
		return cli.Words("tcp", "udp", "icmp", "icmp6", "sctp", "arp", "llc")
	case "direction":
		return cli.Words("ingress", "egress")
	case "fail":
		return cli.Words("closed", "open")
	case "row":
		return rowsOf
	case "output":
		return cli.Words("table", "json", "yaml")
	}
	return nil
}

// fieldWords returns the values of a policy field that has only a few.
func fieldWords(f plan.Field) cli.Source {
	switch f.Flag {
	case "active", "standby":
		return both(uplinkNames, lagNames)
	}
	if list := f.Words(); len(list) > 0 {
		return cli.Words(list...)
	}
	return nil
}

// vlanWords returns what a port's own VLAN can be in addition to a number; elsewhere --vlan is a number.
func vlanWords(path string) cli.Source {
	switch path {
	case "heddle port connect":
		return cli.Words("none")
	case "heddle capture":
		return cli.Words("untagged")
	}
	return nil
}

func reasonNames() (list []string) {
	for r := range abi.Reasons() {
		list = append(list, r.String())
	}
	return list
}

func isDirectoryFlag(name string) bool { return name == "run-dir" || name == "state-dir" }

// isFileFlag reports whether a flag takes a file of any name; flags for files with an extension are marked where they
// are made.
func isFileFlag(name string) bool {
	switch name {
	case "write", "pcap", "qmp", "controller", "token-file", "ca", "metrics-cert", "metrics-key", "metrics-client-ca",
		"metrics-token-file", "password-file":
		return true
	}
	return false
}

// isFileArgument reports whether an argument may be a file.
func isFileArgument(path, word string) bool {
	return word == "FILE" || path == "heddle lab up" && word == "SCENARIO" || path == "heddle lab exec" &&
		word == "COMMAND"
}

// contextNames are those of the user's contexts.
func contextNames(*cobra.Command, []string) (list []string) {
	path, err := contexts.Path(os.Getenv)
	if err != nil {
		return nil
	}
	file, err := contexts.Load(path)
	if err != nil {
		return nil
	}
	for _, c := range file.Contexts {
		list = append(list, c.Name)
	}
	return list
}

// fleetHosts returns the hosts of the cluster, of the controller that the command would ask.
func fleetHosts(c *cobra.Command, _ []string) (list []string) {
	ctx, cancel := context.WithTimeout(c.Context(), completeWithin)
	defer cancel()
	client, err := (&cli.FleetTarget{Address: cli.FlagText(c, "controller"), Context: cli.FlagText(c, "context"),
		Otherwise: cli.DefaultController, Getenv: os.Getenv}).Client()
	if err != nil {
		return nil
	}
	fleet, err := client.Hosts(ctx)
	if err != nil {
		return nil
	}
	for _, h := range fleet.Hosts {
		list = append(list, h.Name)
	}
	return list
}

func ports(c *cobra.Command, args []string) []string {
	return inState(func(s *api.State, of func(string) bool) (list []string) {
		for _, p := range s.Ports {
			if of(p.Switch) {
				list = append(list, p.Name)
			}
		}
		return list
	})(c, args)
}

func runTimePorts(c *cobra.Command, args []string) []string {
	return inState(func(s *api.State, _ func(string) bool) (list []string) {
		for _, p := range s.Ports {
			if p.Origin == api.FromRun {
				list = append(list, p.Name)
			}
		}
		return list
	})(c, args)
}

func runTimeDevices(c *cobra.Command, args []string) []string {
	return inState(func(s *api.State, _ func(string) bool) (list []string) {
		for _, p := range s.Ports {
			if p.Origin == api.FromRun {
				list = append(list, p.Device)
			}
		}
		return list
	})(c, args)
}

func owners(c *cobra.Command, args []string) []string {
	return inState(func(s *api.State, _ func(string) bool) (list []string) {
		for _, p := range s.Ports {
			list = append(list, p.Owner)
		}
		return list
	})(c, args)
}

func portGroups(c *cobra.Command, args []string) []string {
	return inState(func(s *api.State, of func(string) bool) (list []string) {
		for _, g := range s.PortGroups {
			if of(g.Switch) {
				list = append(list, g.Name)
			}
		}
		return list
	})(c, args)
}

func switchNames(c *cobra.Command, args []string) []string {
	return inState(func(s *api.State, _ func(string) bool) (list []string) {
		for _, sw := range s.Switches {
			list = append(list, sw.Name)
		}
		return list
	})(c, args)
}

func uplinkNames(c *cobra.Command, args []string) []string {
	return inState(func(s *api.State, of func(string) bool) (list []string) {
		for _, u := range s.Uplinks {
			if of(u.Switch) {
				list = append(list, u.Name)
			}
		}
		return list
	})(c, args)
}

func lagNames(c *cobra.Command, args []string) []string {
	return inState(func(s *api.State, of func(string) bool) (list []string) {
		for _, u := range s.Uplinks {
			if u.LAG != nil && of(u.Switch) {
				list = append(list, u.LAG.Name)
			}
		}
		return list
	})(c, args)
}

func uplinkDevices(c *cobra.Command, args []string) []string {
	return inState(func(s *api.State, _ func(string) bool) (list []string) {
		for _, u := range s.Uplinks {
			list = append(list, u.Device)
		}
		return list
	})(c, args)
}

func hostPorts(c *cobra.Command, _ []string) (list []string) {
	all, _ := asked(c, func(ctx context.Context, s api.Service) ([]api.HostPort, error) { return s.HostPorts(ctx) })
	for _, p := range all {
		list = append(list, p.Name)
	}
	return list
}

func macAddresses(c *cobra.Command, _ []string) (list []string) {
	all, _ := asked(c, func(ctx context.Context, s api.Service) ([]api.MAC, error) { return s.MACs(ctx) })
	for _, m := range all {
		list = append(list, m.MAC)
	}
	return list
}

// hostDevices returns the network interfaces of this network namespace.
func hostDevices(*cobra.Command, []string) (list []string) {
	all, _ := net.Interfaces()
	for _, i := range all {
		if i.Flags&net.FlagLoopback == 0 {
			list = append(list, i.Name)
		}
	}
	return list
}

// agentNames returns the agents whose sockets are in the run directory.
func agentNames(c *cobra.Command, _ []string) (list []string) {
	all, _ := filepath.Glob(api.SocketPath(cli.FlagText(c, "run-dir"), "*"))
	for _, path := range all {
		list = append(list, strings.TrimSuffix(filepath.Base(path), ".sock"))
	}
	return list
}

func labRecords(c *cobra.Command) []*lab.Record {
	all, err := lab.List(cli.FlagText(c, "run-dir"))
	if err != nil {
		return nil
	}
	return all
}

func labNames(c *cobra.Command, _ []string) (list []string) {
	for _, r := range labRecords(c) {
		list = append(list, r.Name)
	}
	return list
}

// labNodes returns the nodes of the lab that is named by the first argument.
func labNodes(c *cobra.Command, args []string) (list []string) {
	for _, r := range labRecords(c) {
		if len(args) == 0 || r.Name != args[0] {
			continue
		}
		for _, n := range r.Nodes {
			if n.Namespace != "" {
				list = append(list, n.Name)
			}
		}
	}
	return list
}

func experimentNames(*cobra.Command, []string) []string {
	return cmd.ExperimentNames()
}

// experimentRows returns all rows from which a lab can be built, as EXPERIMENT/ROW.
func experimentRows(*cobra.Command, []string) (list []string) {
	for _, name := range experiment.Names() {
		for _, row := range cmd.RowNames(name) {
			list = append(list, name+"/"+row)
		}
	}
	return list
}

// rowsOf returns the rows of the experiment that is named by the first argument; without one there are none.
func rowsOf(_ *cobra.Command, args []string) []string {
	if len(args) == 0 {
		return nil
	}
	return cmd.RowNames(args[0])
}
