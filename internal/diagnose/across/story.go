package across

import "heddle/internal/diagnose"

// End is a port of a host.
type End struct {
	Host   string `json:"host"`
	Switch string `json:"switch"`
	Port   string `json:"port"`
}

func (e End) String() string { return e.Host + ":" + e.Port }

// Story is what becomes of frames from a port of one host to a port of another.
type Story struct {
	From End `json:"from"`
	To   End `json:"to"`
	// Answer is what the story comes to.
	Answer diagnose.Answer `json:"answer"`
	// Host is where a no has its reason; "" for a yes.
	Host string `json:"host,omitempty"`
	Legs []Leg  `json:"legs"`
	// Notes are about the whole story.
	Notes []string `json:"notes,omitempty"`
	// Agree says that model and kernel program agree on every frame, on both hosts.
	Agree bool `json:"agree"`
}

// Leg is the way of one frame.
type Leg struct {
	// Protocol and Frame say which frame of a conversation it is; "" for a frame that was given.
	Protocol string `json:"protocol,omitempty"`
	Frame    string `json:"frame,omitempty"`
	From     End    `json:"from"`
	To       End    `json:"to"`
	// Verdict: the frame arrives, if the physical network brings it from one host to the other.
	Verdict diagnose.Verdict `json:"verdict"`
	Path    string           `json:"path"`
	Reason  string           `json:"reason,omitempty"`
	// Host is where it ends, "" where it arrives.
	Host string `json:"host,omitempty"`
	// Sent is what the host of the sender says, Network what is taken of the physical network, Received what the host
	// of the receiver says, for each uplink by which the frame may come in.
	Sent     *diagnose.Report `json:"sent"`
	Network  string           `json:"network,omitempty"`
	Received []Arrival        `json:"received,omitempty"`
	// Outer is the packet in which the frame goes through a tunnel; nil for a frame that goes by a VLAN.
	Outer *diagnose.Outer `json:"outer,omitempty"`
}

// Arrival is a frame that comes in at an uplink.
type Arrival struct {
	Uplink string `json:"uplink"`
	// Counts: the verdict rests on it. A frame for one station comes by the uplink where the physical network knows
	// that station; what a host does with it at other uplinks is shown, and decides nothing.
	Counts bool             `json:"counts"`
	Report *diagnose.Report `json:"report"`
}
