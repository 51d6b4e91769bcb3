package doctor

import "strings"

// machineID finds a machine that does not know itself from others: containers and LXC guests are named by it.
func machineID(f Facts) []Finding {
	const remedy = "systemd-machine-id-setup, or dbus-uuidgen --ensure=/etc/machine-id; on clones of one machine " +
		"remove /etc/machine-id first"
	switch id := strings.TrimSpace(f.Machine); id {
	case "", "uninitialized":
		return []Finding{{Level: Note, Text: "/etc/machine-id is empty or missing, as in an image that is to be " +
			"cloned: containers of one name on several hosts count as one guest", Remedy: remedy}}
	}
	return nil
}
