package vsphere

import "encoding/json"

// The managed objects of the vSphere API, with the properties that are read of them. Names of fields are those of the
// API in JSON, as govc and the VI JSON API write them.

// ref names a managed object.
type ref struct {
	Type  string `json:"type"`
	Value string `json:"value"`
	// ServerGUID is the vCenter's id, where it says it.
	ServerGUID string `json:"serverGuid"`
}

// object is a managed object: a switch, a port group or a host. Only one kind's properties are set. A dump has it with
// its properties, or as the ObjectUpdate of govc object.collect.
type object struct {
	Self   ref    `json:"self"`
	Name   string `json:"name"`
	Config config `json:"config"`
	// Port are the uplink ports of switches, as govc dvs.portgroup.info writes them.
	Port []port `json:"port"`

	source int // the dump that it was read from
}

// read reports whether objects of this type are read.
func (o *object) read() bool {
	switch o.Self.Type {
	case "VmwareDistributedVirtualSwitch", "DistributedVirtualSwitch", "DistributedVirtualPortgroup", "HostSystem":
		return true
	}
	return false
}

// config has the properties of a VMwareDVSConfigInfo, a DVPortgroupConfigInfo and a HostConfigInfo.
type config struct {
	Name              string      `json:"name"`
	UUID              string      `json:"uuid"`
	Key               string      `json:"key"`
	Description       string      `json:"description"`
	DefaultPortConfig *setting    `json:"defaultPortConfig"`
	Policy            groupPolicy `json:"policy"`

	// Of a switch.
	UplinkPortPolicy struct {
		UplinkPortName []string `json:"uplinkPortName"`
	} `json:"uplinkPortPolicy"`
	Contact struct {
		Name    string `json:"name"`
		Contact string `json:"contact"`
	} `json:"contact"`
	NumStandalonePorts          int             `json:"numStandalonePorts"`
	UplinkPortgroup             []ref           `json:"uplinkPortgroup"`
	Host                        []member        `json:"host"`
	SwitchIPAddress             string          `json:"switchIpAddress"`
	NetworkResourceManagement   bool            `json:"networkResourceManagementEnabled"`
	HealthCheckConfig           []healthCheck   `json:"healthCheckConfig"`
	VspanSession                []vspanSession  `json:"vspanSession"`
	PvlanConfig                 []pvlan         `json:"pvlanConfig"`
	MaxMTU                      int             `json:"maxMtu"`
	LinkDiscoveryProtocolConfig *discovery      `json:"linkDiscoveryProtocolConfig"`
	IpfixConfig                 *ipfix          `json:"ipfixConfig"`
	LacpGroupConfig             []lacpGroup     `json:"lacpGroupConfig"`
	MulticastFilteringMode      string          `json:"multicastFilteringMode"`
	NetworkOffloadSpecID        string          `json:"networkOffloadSpecId"`
	InfrastructureTraffic       []trafficShares `json:"infrastructureTrafficResourceConfig"`

	// Of a port group.
	NumPorts                 int    `json:"numPorts"`
	DistributedVirtualSwitch *ref   `json:"distributedVirtualSwitch"`
	Type                     string `json:"type"`
	BackingType              string `json:"backingType"`
	AutoExpand               *bool  `json:"autoExpand"`
	Uplink                   bool   `json:"uplink"`
	ResourcePool             string `json:"vmVnicNetworkResourcePoolKey"`
	SegmentID                string `json:"segmentId"`
	LogicalSwitchUUID        string `json:"logicalSwitchUuid"`

	// Of a host.
	Network *hostNetwork `json:"network"`
}

// groupPolicy is a VMwareDVSPortgroupPolicy: what a single port may set.
type groupPolicy struct {
	Block               *bool `json:"blockOverrideAllowed"`
	Shaping             bool  `json:"shapingOverrideAllowed"`
	ResetAtDisconnect   *bool `json:"portConfigResetAtDisconnect"`
	NetworkResourcePool bool  `json:"networkResourcePoolOverrideAllowed"`
	TrafficFilter       bool  `json:"trafficFilterOverrideAllowed"`
	VLAN                bool  `json:"vlanOverrideAllowed"`
	Teaming             bool  `json:"uplinkTeamingOverrideAllowed"`
	Security            bool  `json:"securityPolicyOverrideAllowed"`
	IPFIX               bool  `json:"ipfixOverrideAllowed"`
	MACManagement       bool  `json:"macManagementOverrideAllowed"`
}

// policy is an InheritablePolicy with one value.
type policy[T any] struct {
	Inherited bool `json:"inherited"`
	Value     *T   `json:"value"`
}

// setting is a VMwareDVSPortSetting.
type setting struct {
	Blocked                *policy[bool]   `json:"blocked"`
	InShapingPolicy        *shaping        `json:"inShapingPolicy"`
	OutShapingPolicy       *shaping        `json:"outShapingPolicy"`
	NetworkResourcePoolKey *policy[string] `json:"networkResourcePoolKey"`
	FilterPolicy           *struct {
		Inherited    bool              `json:"inherited"`
		FilterConfig []json.RawMessage `json:"filterConfig"`
	} `json:"filterPolicy"`
	VLAN                *vlan          `json:"vlan"`
	QosTag              *policy[int]   `json:"qosTag"`
	Teaming             *teaming       `json:"uplinkTeamingPolicy"`
	SecurityPolicy      *security      `json:"securityPolicy"`
	IpfixEnabled        *policy[bool]  `json:"ipfixEnabled"`
	TxUplink            *policy[bool]  `json:"txUplink"`
	LacpPolicy          *lacpPolicy    `json:"lacpPolicy"`
	MACManagementPolicy *macManagement `json:"macManagementPolicy"`
}

type shaping struct {
	Inherited        bool           `json:"inherited"`
	Enabled          *policy[bool]  `json:"enabled"`
	AverageBandwidth *policy[int64] `json:"averageBandwidth"`
	PeakBandwidth    *policy[int64] `json:"peakBandwidth"`
	BurstSize        *policy[int64] `json:"burstSize"`
}

// vlan is one of the three kinds of a VmwareDistributedVirtualSwitchVlanSpec: an id, ranges, or a private VLAN.
type vlan struct {
	Inherited bool            `json:"inherited"`
	VlanID    json.RawMessage `json:"vlanId"`
	PvlanID   int             `json:"pvlanId"`
}

type vlanRange struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

type teaming struct {
	Inherited       bool            `json:"inherited"`
	Policy          *policy[string] `json:"policy"`
	ReversePolicy   *policy[bool]   `json:"reversePolicy"`
	NotifySwitches  *policy[bool]   `json:"notifySwitches"`
	RollingOrder    *policy[bool]   `json:"rollingOrder"`
	FailureCriteria *struct {
		Inherited         bool          `json:"inherited"`
		CheckDuplex       *policy[bool] `json:"checkDuplex"`
		CheckErrorPercent *policy[bool] `json:"checkErrorPercent"`
		CheckBeacon       *policy[bool] `json:"checkBeacon"`
	} `json:"failureCriteria"`
	UplinkPortOrder *struct {
		Inherited bool     `json:"inherited"`
		Active    []string `json:"activeUplinkPort"`
		Standby   []string `json:"standbyUplinkPort"`
	} `json:"uplinkPortOrder"`
}

type security struct {
	Inherited        bool          `json:"inherited"`
	AllowPromiscuous *policy[bool] `json:"allowPromiscuous"`
	MACChanges       *policy[bool] `json:"macChanges"`
	ForgedTransmits  *policy[bool] `json:"forgedTransmits"`
}

type macManagement struct {
	Inherited        bool  `json:"inherited"`
	AllowPromiscuous *bool `json:"allowPromiscuous"`
	MACChanges       *bool `json:"macChanges"`
	ForgedTransmits  *bool `json:"forgedTransmits"`
	MACLearning      *struct {
		Inherited            bool   `json:"inherited"`
		Enabled              bool   `json:"enabled"`
		AllowUnicastFlooding *bool  `json:"allowUnicastFlooding"`
		Limit                *int   `json:"limit"`
		LimitPolicy          string `json:"limitPolicy"`
	} `json:"macLearningPolicy"`
}

type lacpPolicy struct {
	Inherited bool          `json:"inherited"`
	Enable    *policy[bool] `json:"enable"`
}

// member is a host of a switch.
type member struct {
	Config struct {
		Host    *ref `json:"host"`
		Backing struct {
			PnicSpec []struct {
				PnicDevice    string `json:"pnicDevice"`
				UplinkPortKey string `json:"uplinkPortKey"`
			} `json:"pnicSpec"`
		} `json:"backing"`
	} `json:"config"`
}

type healthCheck struct {
	Enable bool `json:"enable"`
}

type vspanSession struct {
	Name    string `json:"name"`
	Enabled bool   `json:"enabled"`
}

type pvlan struct {
	PrimaryVlanID   int    `json:"primaryVlanId"`
	SecondaryVlanID int    `json:"secondaryVlanId"`
	PvlanType       string `json:"pvlanType"`
}

type discovery struct {
	Protocol  string `json:"protocol"`
	Operation string `json:"operation"`
}

type ipfix struct {
	CollectorIPAddress  string `json:"collectorIpAddress"`
	CollectorPort       int    `json:"collectorPort"`
	ObservationDomainID int    `json:"observationDomainId"`
	ActiveFlowTimeout   int    `json:"activeFlowTimeout"`
	IdleFlowTimeout     int    `json:"idleFlowTimeout"`
	SamplingRate        int    `json:"samplingRate"`
	InternalFlowsOnly   bool   `json:"internalFlowsOnly"`
}

type lacpGroup struct {
	Name                 string   `json:"name"`
	Mode                 string   `json:"mode"`
	UplinkNum            int      `json:"uplinkNum"`
	LoadbalanceAlgorithm string   `json:"loadbalanceAlgorithm"`
	UplinkName           []string `json:"uplinkName"`
	TimeoutMode          string   `json:"timeoutMode"`
	VLAN                 *struct {
		VlanID []vlanRange `json:"vlanId"`
	} `json:"vlan"`
	Ipfix *struct {
		IpfixEnabled bool `json:"ipfixEnabled"`
	} `json:"ipfix"`
}

type trafficShares struct {
	Key            string `json:"key"`
	AllocationInfo struct {
		Limit  *int64 `json:"limit"`
		Shares *struct {
			Shares int    `json:"shares"`
			Level  string `json:"level"`
		} `json:"shares"`
		Reservation *int64 `json:"reservation"`
	} `json:"allocationInfo"`
}

// port is a DistributedVirtualPort.
type port struct {
	Key     string `json:"key"`
	DvsUUID string `json:"dvsUuid"`
	Config  struct {
		Name string `json:"name"`
	} `json:"config"`
}

// hostNetwork is a HostNetworkInfo.
type hostNetwork struct {
	Vnic          []vnic         `json:"vnic"`
	IPRouteConfig *ipRouteConfig `json:"ipRouteConfig"`
	// NetStackInstance are the TCP/IP stacks. An adapter without a key is of defaultStack.
	NetStackInstance []struct {
		Key           string         `json:"key"`
		IPRouteConfig *ipRouteConfig `json:"ipRouteConfig"`
	} `json:"netStackInstance"`
}

// ipRouteConfig is a HostIpRouteConfig.
type ipRouteConfig struct {
	DefaultGateway     string `json:"defaultGateway"`
	IPv6DefaultGateway string `json:"ipV6DefaultGateway"`
}

// vnic is a HostVirtualNic with its HostVirtualNicSpec.
type vnic struct {
	Device string `json:"device"`
	Spec   struct {
		MTU int    `json:"mtu"`
		MAC string `json:"mac"`
		IP  *struct {
			DHCP       bool   `json:"dhcp"`
			IPAddress  string `json:"ipAddress"`
			SubnetMask string `json:"subnetMask"`
			IPv6Config *struct {
				IPv6Address []struct {
					IPAddress    string `json:"ipAddress"`
					PrefixLength int    `json:"prefixLength"`
					Origin       string `json:"origin"`
				} `json:"ipV6Address"`
				AutoConfigurationEnabled bool `json:"autoConfigurationEnabled"`
				DHCPv6Enabled            bool `json:"dhcpV6Enabled"`
			} `json:"ipV6Config"`
		} `json:"ip"`
		NetStackInstanceKey string `json:"netStackInstanceKey"`
		IPRouteSpec         *struct {
			IPRouteConfig *ipRouteConfig `json:"ipRouteConfig"`
		} `json:"ipRouteSpec"`
		PinnedPnic             string `json:"pinnedPnic"`
		DistributedVirtualPort *struct {
			SwitchUUID   string `json:"switchUuid"`
			PortgroupKey string `json:"portgroupKey"`
		} `json:"distributedVirtualPort"`
	} `json:"spec"`
}
