package observe

// WaitEvidence names how it is known that a port's guest runs elsewhere (S99). "" means that no wait is known.
type WaitEvidence string

// The kinds of evidence. They are in the agent's state file.
const (
	// WaitAnnounced: the request that connected the port said that the guest will arrive.
	WaitAnnounced WaitEvidence = "announced"
	// WaitQEMUWaits: the port's QEMU waits for an incoming migration.
	WaitQEMUWaits WaitEvidence = "qemu-waits"
	// WaitQEMUStarts: the port's QEMU has not started its guest yet.
	WaitQEMUStarts WaitEvidence = "qemu-starts"
	// WaitQEMUStopped: the port's QEMU has stopped the guest for a migration.
	WaitQEMUStopped WaitEvidence = "qemu-stopped"
	// WaitQEMUSilent: the port's QEMU has not answered yet whether the guest runs here.
	WaitQEMUSilent WaitEvidence = "qemu-silent"
	// WaitLibvirtStopped: libvirt has stopped the guest for a migration.
	WaitLibvirtStopped WaitEvidence = "libvirt-stopped"
	// WaitSentElsewhere: the guest has sent a frame at the port that replaces this one.
	WaitSentElsewhere WaitEvidence = "sent-elsewhere"
	// WaitRecordLost: the agent before this one had begun the wait, and ended before it could write down why.
	WaitRecordLost WaitEvidence = "record-lost"
	// WaitSilenced: a manager has silenced the port to move its guest to another host.
	WaitSilenced WaitEvidence = "silenced"
)

// Text describes the evidence for people, "" for none. The text of an unknown code is the code.
func (e WaitEvidence) Text() string {
	switch e {
	case WaitAnnounced:
		return "who connected it says so"
	case WaitQEMUWaits:
		return "its QEMU waits for it"
	case WaitQEMUStarts:
		return "its QEMU has not started the guest yet: the port speaks when QEMU runs it"
	case WaitQEMUStopped:
		return "its QEMU has stopped it"
	case WaitQEMUSilent:
		return "its QEMU has not said yet whether the guest runs here"
	case WaitLibvirtStopped:
		return "libvirt says that it was stopped"
	case WaitSentElsewhere:
		return "it has sent a frame at the port in its place"
	case WaitRecordLost:
		return "the agent had silenced the port, and ended before it could write down why"
	case WaitSilenced:
		return "a manager has silenced the port to move its guest"
	}
	return string(e)
}
