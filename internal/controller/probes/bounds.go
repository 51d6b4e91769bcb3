package probes

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/fabric"
)

// mostSaid is how much a host may say at a time of its uplinks and of what it found, in bytes: that is kept, and told
// to the other controllers.
const mostSaid = 4 << 20

// fits refuses what is more than a host can have to say.
func fits(m *controllerv1.FollowProbesRequest) error {
	if n := proto.Size(m); n > mostSaid {
		return fmt.Errorf("a message of %d bytes about probes is more than a host can have to say, which is %d", n,
			mostSaid)
	}
	return nil
}

// has reports whether an end of probes is an uplink of the host: it says of those alone what arrives there (S104).
func (o *host) has(id fabric.EndID) bool {
	return slices.ContainsFunc(o.members, func(m fabric.Member) bool { return m.ID() == id })
}
