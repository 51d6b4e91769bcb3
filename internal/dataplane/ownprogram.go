package dataplane

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// putBack puts the instance's own programs back behind its attachments to a device, where somebody has exchanged one:
// an attachment keeps its id then, and frames go to another switch, or nowhere. It returns the programs that were
// there.
func putBack(all []*links, ifindex uint32) (foreign []uint32, err error) {
	for _, l := range all {
		id, errLink := l.putBack(ifindex)
		if id != 0 {
			foreign = append(foreign, uint32(id))
		}
		err = errors.Join(err, errLink)
	}
	return foreign, err
}

// putBack is putBack for one attachment; it returns 0 where the own program is there, or is about to be.
func (l *links) putBack(index uint32) (ebpf.ProgramID, error) {
	k, ok := l.byIndex[index]
	if !ok || l.old[index] || l.program == nil {
		return 0, nil
	}
	info, err := k.Info()
	if err != nil {
		return 0, fmt.Errorf("look at the attachment of device %d: %w", index, err)
	}
	own, err := l.program.Info()
	if err != nil {
		return 0, fmt.Errorf("look at the switch's program: %w", err)
	}
	if id, ok := own.ID(); !ok || id == info.Program {
		return 0, nil
	}
	err = k.Update(l.program)
	if errors.Is(err, unix.ENOLINK) { // the device went in between
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("put the switch's program back on device %d: %w", index, err)
	}
	return info.Program, nil
}
