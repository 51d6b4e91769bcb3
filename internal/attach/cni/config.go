package cni

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net"
	"strings"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/containernetworking/cni/pkg/version"

	"heddle/internal/spec"
)

// Config is the network's configuration; fields without a comment are as in the specification.
type Config struct {
	types.PluginConf
	// Switch and PortGroup are where containers are connected; Switch may be left out if there is only one.
	Switch    string `json:"switch"`
	PortGroup string `json:"portGroup"`
	// MTU is that of the container's interface, in bytes; default the switch's.
	MTU int `json:"mtu"`
	// Agent and RunDir select the agent; default "default" and /run/heddle.
	Agent  string `json:"agent"`
	RunDir string `json:"runDir"`
	// RuntimeConfig is what the runtime adds if the configuration has the capability "mac".
	RuntimeConfig struct {
		MAC string `json:"mac"`
	} `json:"runtimeConfig"`
	// Args are the arguments that an orchestrator writes into the configuration (the conventions' "args").
	Args struct {
		CNI struct {
			MAC string `json:"mac"`
		} `json:"cni"`
	} `json:"args"`
}

// attachment is one interface of one container, for one invocation of the plugin.
type attachment struct {
	conf      Config
	raw       []byte // the configuration as it was given, for IPAM plugins
	container string
	netns     string
	ifname    string
	mac       net.HardwareAddr // nil for the kernel's choice
	pod       string           // the UID of the container's pod; "" where the runtime knows no pods
}

// parse reads the configuration and the arguments. CNI_ARGS may contain MAC, HEDDLE_PORT_GROUP and K8S_POD_UID; the
// runtime's others are ignored.
func parse(args *skel.CmdArgs) (*attachment, error) {
	a := &attachment{raw: args.StdinData, container: args.ContainerID, netns: args.Netns, ifname: args.IfName}
	if err := json.Unmarshal(args.StdinData, &a.conf); err != nil {
		return nil, types.NewError(types.ErrDecodingFailure, "the network's configuration is no valid JSON",
			err.Error())
	}
	if err := version.ParsePrevResult(&a.conf.PluginConf); err != nil {
		return nil, types.NewError(types.ErrDecodingFailure, "prevResult is not valid", err.Error())
	}
	mac := cmp.Or(a.conf.RuntimeConfig.MAC, a.conf.Args.CNI.MAC)
	for pair := range strings.SplitSeq(args.Args, ";") {
		switch key, value, _ := strings.Cut(pair, "="); {
		case key == "MAC" && mac == "":
			mac = value
		case key == "K8S_POD_UID":
			a.pod = value
		case key == "HEDDLE_PORT_GROUP":
			a.conf.PortGroup = value
		}
	}
	if mac != "" {
		hw, err := net.ParseMAC(mac)
		if err != nil || len(hw) != 6 || hw[0]&1 != 0 {
			return nil, types.NewError(types.ErrInvalidEnvironmentVariables,
				fmt.Sprintf("MAC %q is not one an adapter can have", mac),
				"want six octets such as 02:00:00:00:00:01, not a multicast address")
		}
		a.mac = hw
	}
	return a, nil
}

// check returns what the configuration lacks to connect a container.
func (a *attachment) check() error {
	if a.conf.PortGroup == "" {
		return types.NewError(types.ErrInvalidNetworkConfig, "no port group",
			`give the network's configuration a "portGroup", or set HEDDLE_PORT_GROUP in CNI_ARGS`)
	}
	if a.conf.MTU < 0 {
		return types.NewError(types.ErrInvalidNetworkConfig, fmt.Sprintf("mtu %d is negative", a.conf.MTU), "")
	}
	return nil
}

func (a *attachment) agent() string {
	if a.conf.Agent == "" {
		return "default"
	}
	return a.conf.Agent
}

func (a *attachment) runDir() string {
	if a.conf.RunDir == "" {
		return "/run/heddle"
	}
	return a.conf.RunDir
}

// hostDevice is the name of the host's end: always the same for an attachment, so that it can be found without its
// container.
func hostDevice(network, container, ifname string) string {
	h := sha256.Sum256([]byte(network + "\x00" + container + "\x00" + ifname))
	return fmt.Sprintf("hc%x", h[:6])
}

func (a *attachment) hostDevice() string { return hostDevice(a.conf.Name, a.container, a.ifname) }

// longestNetwork is how much of a network's name is in the names of its ports, in bytes, so that these are no longer
// than names may be.
const longestNetwork = 26

// portPrefix begins the names of all ports of a network. A long name is shortened, and told from others by its hash.
func portPrefix(network string) string {
	if len(network) > longestNetwork {
		h := sha256.Sum256([]byte(network))
		hash := fmt.Sprintf("-%x", h[:6])
		network = strings.ToValidUTF8(network[:longestNetwork-len(hash)], "") + hash
	}
	return "cni/" + network + "/"
}

// shownContainer is how much of a container's identifier is in the port's name: as much as runtimes show.
const shownContainer = 12

// ownerContainer is how much of it is in the name of the port's owner: enough to be unique, but short enough for a
// name.
const ownerContainer = 48

// port is the port's name. The part of an identifier that runtimes show need not be unique; the device's name is.
func port(network, container, ifname string) string {
	begin := portPrefix(network) + container[:min(len(container), shownContainer)] + "/"
	end := "/" + hostDevice(network, container, ifname)
	return begin + ifname[:min(len(ifname), spec.MaxName-len(begin)-len(end))] + end
}

// ownerBegin begins the owners of containers' ports.
const ownerBegin = "cni/"

// owner is the container: its interfaces on all networks belong together.
func (a *attachment) owner() string {
	return ownerBegin + a.container[:min(len(a.container), ownerContainer)]
}

func (a *attachment) port() string { return port(a.conf.Name, a.container, a.ifname) }
