package agent

import (
	"fmt"

	"heddle/internal/agent/held"
)

// hostUse says for what the host itself needs a device. A guest gets none of those, unless somebody on this host says
// so.
type hostUse struct {
	*shared
	ports *ports
}

// of says for what the host needs the device of that name; "" for nothing, and for a device that is yet to be made.
func (u hostUse) of(device string) (string, error) {
	for _, sw := range u.Active().Config.Switches {
		for _, up := range sw.Uplinks {
			if up.Device == device {
				return fmt.Sprintf("it is uplink %s of switch %s", up.Name, sw.Name), nil
			}
		}
	}
	d, ok, err := u.dev.Device(device)
	if err != nil || !ok { // the guest's hypervisor makes it when the guest arrives
		return "", err
	}
	return held.HostUse(u.dev, d), nil
}
