package dataplane

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"heddle/internal/abi"
)

// Directories of the attachments: for incoming frames, and for the host's own outgoing frames.
const (
	linkDir   = "links"
	egressDir = "egress"
)

// links are the pinned attachments of one program, one file per device, named after its ifindex.
type links struct {
	dir     string
	hook    ebpf.AttachType
	program *ebpf.Program
	log     *slog.Logger
	byIndex map[uint32]link.Link
	slots   map[uint32]uint32 // the content of slot_by_ifindex
	adopted map[uint32]bool   // devices that were attached when this process began
	old     map[uint32]bool   // those of adopted that run an earlier program
	keep    map[uint32]uint32 // devices to be attached, with their slots
	wanted  map[uint32]error  // those of keep that are not attached yet, with the error if that was tried
}

// adoptLinks opens the pinned links; each device keeps its program until exchange. Pins of devices that are gone are
// removed (K4), unless program is nil: then all links are opened, wherever their devices are.
func adoptLinks(dir string, hook ebpf.AttachType, program *ebpf.Program, log *slog.Logger) (*links, error) {
	l := &links{dir: dir, hook: hook, program: program, log: log, byIndex: map[uint32]link.Link{},
		slots: map[uint32]uint32{}, adopted: map[uint32]bool{}, old: map[uint32]bool{}}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		index, err := strconv.ParseUint(e.Name(), 10, 32)
		if err != nil {
			continue
		}
		if err := l.adopt(uint32(index)); err != nil {
			return nil, errors.Join(fmt.Errorf("adopt attachment of device %d: %w", index, err), l.close())
		}
	}
	return l, nil
}

func (l *links) path(index uint32) string { return filepath.Join(l.dir, strconv.Itoa(int(index))) }

func (l *links) adopt(index uint32) error {
	k, err := link.LoadPinnedLink(l.path(index), nil)
	if err != nil {
		return err
	}
	info, err := k.Info()
	if err != nil {
		return errors.Join(err, k.Close())
	}
	if t := info.TCX(); t == nil || t.Ifindex != index || l.program != nil && !attachedHere(index, l.hook, info.ID) {
		l.log.Info("device of an attachment is gone", "ifindex", index)
		return errors.Join(k.Unpin(), k.Close())
	}
	l.byIndex[index] = k
	l.old[index], l.adopted[index] = true, true
	return nil
}

// exchange attaches the program to the devices that were attached before, each at one instant (K1). A device that
// disappeared meanwhile is left for step.
func (l *links) exchange() error {
	var errs []error
	for index := range l.old {
		k, ok := l.byIndex[index]
		if ok {
			if err := k.Update(l.program); err != nil && !errors.Is(err, unix.ENOLINK) {
				errs = append(errs, fmt.Errorf("exchange the program of device %d: %w", index, err))
				continue
			}
		}
		delete(l.old, index)
	}
	return errors.Join(errs...)
}

// attachedHere reports whether the device with that index in this namespace has the link. A device that moved to
// another namespace takes its link, and often its index, along; another device may have the index here now (K4).
func attachedHere(index uint32, hook ebpf.AttachType, id link.ID) bool {
	there, err := link.QueryPrograms(link.QueryOptions{Target: int(index), Attach: hook})
	return err == nil && slices.ContainsFunc(there.Programs, func(p link.AttachedProgram) bool {
		have, ok := p.LinkID()
		return ok && have == id
	})
}

// match writes the slot of each device for the program, and notes which devices must run it; step attaches and
// detaches them. One device's failure does not stop the others.
func (l *links) match(want map[uint32]uint32, direct, high *ebpf.Map) error {
	var errs []error
	for index := range l.byIndex {
		if _, ok := want[index]; !ok {
			errs = append(errs, l.setSlot(index, 0, direct, high))
		}
	}
	for index, slot := range want {
		errs = append(errs, l.setSlot(index, slot, direct, high))
	}
	l.note(want)
	return errors.Join(errs...)
}

// note is match for a program that uses the slots written by the match of another program.
func (l *links) note(want map[uint32]uint32) {
	l.wanted = make(map[uint32]error, len(want))
	for index := range want {
		if !l.alive(index) {
			l.wanted[index] = nil
		}
	}
	l.keep = want
}

// step detaches and then attaches devices until none is left or the time is up, and returns how many are left. Each
// takes a grace period in the kernel, during which no other device of the machine can be changed. A device that fails
// is not tried again before the next match. If a device is gone, that is noted in wanted, and is no error.
func (l *links) step(until time.Time) (left int, err error) {
	var errs []error
	for index := range l.byIndex {
		if _, ok := l.keep[index]; ok {
			continue
		}
		if left > 0 || !time.Now().Before(until) {
			left++
			continue
		}
		errs = append(errs, l.detach(index))
	}
	for _, index := range slices.Sorted(maps.Keys(l.wanted)) {
		switch {
		case l.wanted[index] != nil:
		case left > 0 || !time.Now().Before(until):
			left++
		default:
			err := l.ensure(index)
			switch {
			case err == nil:
				delete(l.wanted, index)
				continue
			// it disappeared while it waited: no error, and the next match will not want it
			case errors.Is(err, unix.ENODEV):
				l.log.Debug("device went before it was attached", "ifindex", index)
			default:
				errs = append(errs, err)
			}
			l.wanted[index] = err
		}
	}
	return left, errors.Join(errs...)
}

// alive reports whether the device is attached: one that disappeared left its link behind, and another device may have
// its ifindex now.
func (l *links) alive(index uint32) bool {
	k, ok := l.byIndex[index]
	if !ok {
		return false
	}
	info, err := k.Info()
	return err == nil && info.TCX() != nil && info.TCX().Ifindex == index && attachedHere(index, l.hook, info.ID)
}

// ensure attaches the program to the device unless it is attached already. A link whose device went away and whose
// ifindex was given to another device is replaced.
func (l *links) ensure(index uint32) error {
	if l.alive(index) {
		return nil
	}
	if _, dead := l.byIndex[index]; dead {
		if err := l.detach(index); err != nil {
			return err
		}
	}
	where, err := l.anchor(index)
	if err != nil {
		return err
	}
	k, err := link.AttachTCX(link.TCXOptions{Interface: int(index), Program: l.program, Attach: l.hook, Anchor: where})
	if err != nil {
		return fmt.Errorf("attach to device %d: %w", index, err)
	}
	if err := k.Pin(l.path(index)); err != nil {
		return errors.Join(fmt.Errorf("pin attachment of device %d: %w", index, err), k.Close())
	}
	l.byIndex[index] = k
	return nil
}

func (l *links) detach(index uint32) error {
	k := l.byIndex[index]
	delete(l.byIndex, index)
	// Closing a link whose pin is gone detaches it, also from a device that moved to another namespace.
	err := k.Unpin()
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, k.Close())
}

func (l *links) setSlot(index, slot uint32, direct, high *ebpf.Map) error {
	if told, ok := l.slots[index]; ok && told == slot {
		return nil
	}
	var err error
	switch {
	case index < abi.MaxDirectIfindex:
		err = direct.Put(index, slot)
	case slot == 0:
		if err = high.Delete(index); errors.Is(err, ebpf.ErrKeyNotExist) {
			err = nil
		}
	default:
		err = high.Put(index, slot)
	}
	if err != nil {
		return fmt.Errorf("assign device %d to slot %d: %w", index, slot, err)
	}
	l.slots[index] = slot
	return nil
}

// detachAll detaches all devices; it calls progress after each one with the number that is left.
func (l *links) detachAll(progress func(left int)) error {
	var errs []error
	for index := range l.byIndex {
		errs = append(errs, l.detach(index))
		progress(len(l.byIndex))
	}
	return errors.Join(append(errs, os.Remove(l.dir))...)
}

// close closes the handles; pinned links stay attached.
func (l *links) close() error {
	var errs []error
	for _, k := range l.byIndex {
		errs = append(errs, k.Close())
	}
	return errors.Join(errs...)
}
