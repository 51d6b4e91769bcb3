package rpc

import (
	"heddle/internal/controller/capability"
	staticports "heddle/internal/feature/staticports/fleet"
)

// withStaticPorts are the capabilities of the controllers of these tests.
func withStaticPorts() capability.List { return capability.List{staticports.Capability()} }

// portsIn are the static ports of a fleet.
func portsIn(f *fleet) (found *staticports.Ports) {
	each(f.capabilities, func(_ capable, p *staticports.Ports) { found = p })
	return found
}
