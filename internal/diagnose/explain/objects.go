package explain

// objectField is a field of the file that is not a policy; values and default are those of the reference page of the
// file.
type objectField struct{ path, meaning, values, otherwise, vsphere string }

// Default values that many fields have.
const (
	needed = "needed"
	none   = "none"
)

// objectTopics returns the fields of host, switches, uplinks, LAGs, port groups and ports that are not policies.
func objectTopics() (list []Topic) {
	for _, fields := range [][]objectField{switchFields(), tunnelFields(), linkFields(), flowFields(),
		portFields(), fleetFields()} {
		for _, f := range fields {
			list = append(list, Topic{Kind: Field, Name: f.path, Meaning: f.meaning, Values: f.values,
				Default: f.otherwise, VSphere: f.vsphere, Command: "heddle config show"})
		}
	}
	return list
}

func switchFields() []objectField {
	const truth, name = "true, false", "a name: letters, digits, . _ - / : and space inside, at most 63 bytes"
	return []objectField{
		{"host.macTable",
			"How many learned MACs the ports of all switches may hold together. It takes effect when the " +
				"agent starts.", "4096–4194304; some 120 bytes of kernel memory each", "131072", ""},
		{"switches[].name", "The switch's name.", name + "; without /", needed, ""},
		{"switches[].kind",
			"Which of vSphere's two switches it behaves as: MAC learning, LAGs and load-based teaming " +
				"need a distributed one.", "standard, distributed", "distributed", "Standard or distributed switch"},
		{"switches[].mtu", "The longest packet that the switch carries, without its Ethernet header.",
			"1280–9000 bytes", "1500", "MTU"},
		{"switches[].upDelay", "How long a link has to stay up before its uplink is used again.",
			"a duration of 0s–30m", "100ms", ""},
		{"switches[].discovery.lldp", "What the switch announces to its neighbours on the uplinks, and whether it " +
			"listens to them.", "none, listen, advertise, both", "listen", "Discovery protocol"},
		{"switches[].healthCheck", "Hosts send probes to one another by the switch's uplinks, which find VLANs and " +
			"an MTU that the physical network lacks, and ports that it bundles wrongly: see heddle health.",
			truth, "false", "Health check: VLAN and MTU, teaming and failover"},
		{"switches[].checks.reversePath", "Broadcast and multicast that comes in by another uplink than the " +
			"receiver's own, and what the physical network sends back, is left out.", truth, "true",
			"Net.ReversePathFwdCheck"},
		{"switches[].checks.reversePathPromiscuous", "The same for copies of unicast frames, which promiscuous ports " +
			"and flooding make.", truth, "true", "Net.ReversePathFwdCheckPromisc"},
		{"switches[].checks.blockGuestBPDU", "Spanning-tree frames of guests are dropped.", truth, "true",
			"Net.BlockGuestBPDU"},
		{"switches[].portGroups[].name", "The port group's name, which ports have as portGroup.", name, needed, "Name"},
		{"switches[].portGroups[].overrides.blocked", "A single port may be blocked and unblocked.", truth, "true",
			"Override port policies: block ports"},
		{"switches[].portGroups[].overrides.vlan", "A single port may have a VLAN policy of its own.", truth, "false",
			"Override port policies: VLAN"},
		{"switches[].portGroups[].overrides.security", "A single port may set fields of security.", truth, "false",
			"Override port policies: security"},
		{"switches[].portGroups[].overrides.teaming", "A single port may set fields of teaming.", truth, "false",
			"Override port policies: uplink teaming"},
		{"switches[].portGroups[].overrides.monitoring", "A single port may set fields of monitoring.", truth, "false",
			"Override port policies: NetFlow"},
		{"switches[].portGroups[].overrides.stormControl", "A single port may set fields of stormControl.", truth,
			"false", ""},
		{"switches[].portGroups[].overrides.resetAtDisconnect", "What a port set for itself ends when its owner " +
			"disconnects.", truth, "true", "Configure reset at disconnect"},
		{"switches[].portGroups[].binding", "Whose the ports are: made when a guest connects, or bound to one " +
			"adapter of one VM. It counts where controllers hand out the port group.", "ephemeral, static, elastic",
			"ephemeral",
			"Port binding and port allocation"},
		{"switches[].portGroups[].ports.number", "How many static ports there are, or an elastic port group begins " +
			"with; only in a definition.", "1–65536", "8", "Number of ports"},
		{"switches[].portGroups[].ports.limit", "How far an elastic port group grows; only in a definition.",
			"1–65536", "65536", ""},
		{"switches[].portGroups[].labels", "The labels that a host needs to serve the port group; only in a " +
			"definition.", "names and values, such as {rack: a}", "every host", ""},
	}
}

func linkFields() []objectField {
	return []objectField{
		{"switches[].uplinks[].name", "The uplink's name, the same on every host; teaming and LAGs use it.",
			"a name", needed, "Uplink name"},
		{"switches[].uplinks[].device", "The host's network device. One that is missing is waited for.",
			"a device name, at most 15 bytes; it serves nothing else", "none: down", "Physical adapter (vmnic)"},
		{"switches[].uplinks[].vlans", "The VLANs that the uplink carries, in both directions.",
			"list of ids and ranges 0–4094; 0 is untagged", `["0-4094"]`, ""},
		{"switches[].uplinks[].blocked", "No frame of the switch passes the uplink; the host's own frames on the " +
			"device go on.", "true, false", "false", ""},
		{"switches[].uplinks[].drained", "The uplink is out of use for its maintenance: ports use other uplinks, and " +
			"what arrives is accepted.", "true, false", "false", "Unused uplinks"},
		{"switches[].lags[].name", "The LAG's name; it stands in teaming lists like an uplink.",
			"a name, not that of an uplink of its switch", needed, "Link aggregation group"},
		{"switches[].lags[].uplinks", "The members.", "1–32 uplinks of the switch, each in one LAG and in no teaming " +
			"list", needed, "Number of ports"},
		{"switches[].lags[].mode", "Who speaks LACP first.", "active, passive", "active", "Mode"},
		{"switches[].lags[].timeout", "How often the peer must send, and after how long without a word it is given up.",
			"slow (30 s, 90 s), fast (1 s, 3 s)", "slow", "Timeout mode"},
		{"switches[].lags[].hash", "Which fields of a frame choose its member: of source and destination.",
			"mac, ip, ip-vlan, ip-port, ip-port-vlan", "ip-port-vlan", "Load balancing mode"},
		{"switches[].lags[].fallback", "What works while the peer speaks no LACP.",
			"single (one member), none", "single", ""},
	}
}

func flowFields() []objectField {
	const in, to = "switches[].ipfix.", "switches[].ipfix.collectors[]."
	return []objectField{
		{to + "address", "Where flow records are sent.", "an IP address, or a host name", needed, "IP address"},
		{to + "port", "The collector's port.", "1–65535", "4739; with transport: tls 4740", "Port"},
		{to + "transport", "How records are sent.", "udp, tcp, tls", "udp", ""},
		{to + "shape", "How records are laid out.", "standard (RFC 7012), vds (as a VDS does)", "standard", ""},
		{to + "ca", "With tls: the authorities that the collector's certificate may come from.", "a file (PEM)",
			"those that the host trusts", ""},
		{to + "certificate", "With tls: what this host shows to a collector that asks.", "a file (PEM)", none, ""},
		{to + "key", "With tls: the certificate's key.", "a file (PEM) that others must not be able to read", none, ""},
		{to + "serverName", "With tls: the name that the collector's certificate must have.",
			"a host name or address", "the address", ""},
		{in + "observationDomainId", "The number under which records are exported.", "0–4294967295", "0",
			"Observation Domain ID"},
		{in + "switchIpAddress", "The source address of messages to IPv4 collectors.", "an IPv4 address",
			"the host's address", "Switch IP address"},
		{in + "activeFlowTimeout", "How often a flow that goes on is reported.", "a duration of 60s–3600s", "60s",
			"Active flow export timeout"},
		{in + "idleFlowTimeout", "How long after its last packet a flow has ended.", "a duration of 10s–600s", "15s",
			"Idle flow export timeout"},
		{in + "samplingRate", "How many packets are left out after each that is metered.", "0–16384; 0 meters every " +
			"packet", "0", "Sampling rate"},
		{in + "internalFlowsOnly", "Only flows between two ports of this host are exported.", "true, false", "false",
			"Process internal flows only"},
		{in + "biflow", "One record for both directions of a conversation (RFC 5103).", "true, false", "false", ""},
		{in + "templates.every", "After this time templates are sent again.", "a duration of 5s–1h", "60s", ""},
		{in + "templates.packets", "After so many messages templates are sent again.", "0–1000000; 0 is by time alone",
			"1000", ""},
		{in + "maxFlows", "How many flows of the switch the agent keeps at a time.", "1000–4000000", "262144", ""},
		{in + "mtu", "The largest IP packet that a message makes.", "540–9000 bytes", "the path's", ""},
	}
}

func portFields() []objectField {
	return []objectField{
		{"ports[].name", "The port's name, one on the host.", "a name, not that of an uplink of its switch", needed,
			""},
		{"ports[].switch", "The switch that it belongs to.", "a switch's name", needed, ""},
		{"ports[].portGroup", "The port group that it belongs to.", "a port group's name", needed, "Port group"},
		{"ports[].role", "What is behind the port: a guest's adapter, or an interface of the host.", "vnic, host",
			"vnic", "VM adapter, VMkernel adapter"},
		{"ports[].device", "The host's end of the guest's adapter, a veth or tap; of a host port the name of its " +
			"interface.", "a device name, at most 15 bytes", "none: down; of a host port its name", ""},
		{"ports[].mac", "The port's own MAC.", "a unicast address, one on the switch", "seen or derived",
			"MAC address"},
		{"ports[].owner", "The guest that the port belongs to; ports of one owner may share a MAC.", "a word",
			"the name up to its last slash", ""},
		{"ports[].domain", "The libvirt domain that the port belongs to, which says where its guest runs.", "a UUID",
			"none; libvirt's hook gives it", ""},
		{"ports[].addresses", "Addresses that Heddle puts on a host port's interface.", "list such as 192.0.2.1/24",
			none, "IPv4 and IPv6 settings"},
		{"ports[].mtu", "The MTU of a host port's interface.", "1280 to the switch's", "the switch's", "MTU"},
		{"ports[].gateway", "The router of a default route that a host port's interface gets.", "an address in the " +
			"network of one of its addresses", "none: no route", "VMkernel gateway"},
		{"ports[].metric", "The metric of that route; the smallest counts.", "0 and more", "the kernel's", ""},
		{"ports[].table", "The routing table of that route.", "a number but 255", "the main table", "TCP/IP stack"},
		{"ports[].txUplink", "A copy of everything that the port sends goes to its uplink, too.", "true, false",
			"false", ""},
		{"ports[].monitor.socket", "A QEMU monitor of Heddle's own, which says what the guest made of its adapter.",
			"the path of a unix socket", none, ""},
		{"ports[].monitor.nic", "The adapter's id in QEMU.", "an id", "the only adapter", ""},
		{"ports[].id", "The static port whose policies the definition sets; only in a definition.",
			"a number, as heddle " +
				"port static list shows it", needed, "Port ID"},
		{"ports[].description", "What people want to know of a static port; only in a definition.",
			"text of at most 255 bytes", none, "Description"},
	}
}

// fleetFields are those of a definition for many hosts alone. A host's own entry has the same as a template.
func fleetFields() (list []objectField) {
	for _, in := range []string{"templates[].", "hosts[]."} {
		ports, switches := in+"hostPorts[].", in+"switches[]."
		list = append(list,
			objectField{in + "labels", "Labels of hosts: a template is for the hosts that have all of its own.",
				"names and values, such as {rack: a}", map[bool]string{true: "every host",
					false: "those of its token"}[in == "templates[]."], ""},
			objectField{switches + "name", "A switch that the hosts have.", "a switch's name", needed, ""},
			objectField{switches + "uplinks[].name", "An uplink that has a device there.", "an uplink's name", needed,
				"Uplink name"},
			objectField{switches + "uplinks[].device", "The device that the uplink is on the hosts.",
				"a device name, at most 15 bytes", needed, "Physical adapter (vmnic)"},
			objectField{ports + "name", "The name of a host port that the hosts have, and of its interface.", "a name",
				needed, "VMkernel adapter"},
			objectField{ports + "switch", "The switch that the host port belongs to.", "a switch's name", needed, ""},
			objectField{ports + "portGroup", "The port group that the host port belongs to.", "a port group's name",
				needed,
				"Port group"},
			objectField{ports + "device", "The name of the interface.", "a device name, at most 15 bytes",
				"the port's name", ""},
			objectField{ports + "pools", "Networks or ranges, from each of which every host has an address that no " +
				"other " +
				"host has.", "list such as 192.0.2.0/24 and 192.0.2.10-192.0.2.99/24", none, ""},
			objectField{ports + "mtu", "The MTU of the interface.", "1280 to the switch's", "the switch's", "MTU"},
			objectField{ports + "gateway", "The router of a default route that the interface gets.",
				"an address in the network of one of its addresses or pools", "none: no route", "VMkernel gateway"},
			objectField{ports + "metric", "The metric of that route; the smallest counts.", "0 and more",
				"the kernel's", ""},
			objectField{ports + "table", "The routing table of that route.", "a number but 255", "the main table",
				"TCP/IP stack"})
	}
	return append(list,
		objectField{"templates[].name",
			"The template's name; of several that give a host the same switch, the last by " +
				"name counts.", "a name", needed, ""},
		objectField{"hosts[].name", "The name by which the host joined, or will.", "a name", needed, "Host"},
		objectField{"hosts[].hostPorts[].addresses", "Addresses of the interface on this host.",
			"list such as 192.0.2.1/24", none, "IPv4 and IPv6 settings"},
		objectField{"templates[].hostPorts[].addresses",
			"Only for one host: see hosts[].hostPorts[].addresses, or pools.",
			"none", none, ""},
		objectField{"templates[].hostPorts[].mac", "Only for one host: see hosts[].hostPorts[].mac.", "none",
			"derived from the host's identity", ""},
		objectField{"hosts[].hostPorts[].mac", "The MAC of the interface on this host.", "a unicast address",
			"derived from the host's identity", "MAC address"})
}
