package dataplane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// Hook is a point on a device where programs run one after the other.
type Hook string

// The hooks that the switch uses.
const (
	Ingress Hook = "ingress" // for frames that the device receives
	Egress  Hook = "egress"  // for the host's own frames that the device sends
)

// Stranger is a program on a hook of a device that is not this instance's own, whoever attached it. It may also be
// another instance's program, or an earlier one of this instance whose link is lost.
type Stranger struct {
	Hook    Hook
	Program uint32 // the kernel's id of the program
	Link    uint32 // the kernel's id of the attachment, 0 for one without a link
	Name    string // "" where this process may not ask for it (CAP_SYS_ADMIN)
	// Instance is the name of the instance with the same run directory that owns the program, "" for others.
	Instance string
	// Before: the stranger sees the frames before the instance's own program, which only gets the frames that the
	// stranger passes on. Otherwise the own program comes first.
	Before bool
}

// Chain is the list of programs on a device's hooks.
type Chain struct {
	// Ours: the instance's own program is on each hook that it needs.
	Ours      bool
	Strangers []Stranger
	// Exchanged are the kernel's ids of programs that somebody had put behind the instance's own attachments; the own
	// ones are back.
	Exchanged []uint32
}

// Chain reads the programs on the device. If the instance's own was removed from the device, Attach attaches it again;
// if it was exchanged, Chain puts it back.
func (k *Kernel) Chain(ifindex uint32) (Chain, error) {
	exchanged, err := putBack(append(k.overlays.links(), k.links, k.egress), ifindex)
	if err != nil {
		return Chain{}, err
	}
	c := Chain{Ours: true, Exchanged: exchanged}
	for _, l := range []*links{k.links, k.egress} {
		if _, wanted := l.keep[ifindex]; !wanted {
			continue
		}
		if _, waits := l.wanted[ifindex]; waits { // it will be first once it is attached
			continue
		}
		own, err := l.id(ifindex)
		if err != nil {
			return c, err
		}
		there, err := chainOf(ifindex, l.hook, own, l.dir)
		if err != nil {
			return c, err
		}
		if !there.Ours {
			l.wanted[ifindex] = nil
		}
		c.Ours, c.Strangers = c.Ours && there.Ours, append(c.Strangers, there.Strangers...)
	}
	return c, nil
}

// PinnedChain reads the programs on a device, for a process that is not the agent. It uses the links that the instance
// has pinned.
func PinnedChain(pinDir string, ifindex uint32) (Chain, error) {
	c := Chain{Ours: true}
	for dir, hook := range map[string]ebpf.AttachType{linkDir: ebpf.AttachTCXIngress, egressDir: ebpf.AttachTCXEgress} {
		dir = filepath.Join(pinDir, dir)
		own, err := pinnedLink(dir, ifindex)
		if errors.Is(err, os.ErrNotExist) && hook == ebpf.AttachTCXEgress {
			continue // the switch does not look at the host's own frames
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return c, err
		}
		there, err := chainOf(ifindex, hook, own, dir)
		if err != nil {
			return c, err
		}
		c.Ours, c.Strangers = c.Ours && there.Ours, append(c.Strangers, there.Strangers...)
	}
	return c, nil
}

// id returns the kernel's id of the device's link, 0 if there is none.
func (l *links) id(index uint32) (link.ID, error) {
	k, ok := l.byIndex[index]
	if !ok {
		return 0, nil
	}
	info, err := k.Info()
	if err != nil {
		return 0, fmt.Errorf("look at the attachment of device %d: %w", index, err)
	}
	return info.ID, nil
}

// chainOf reads one hook; own is the id of the instance's link there, and dir the directory in which that link is
// pinned. A device that is gone has no chain.
func chainOf(index uint32, hook ebpf.AttachType, own link.ID, dir string) (Chain, error) {
	q, err := link.QueryPrograms(link.QueryOptions{Target: int(index), Attach: hook})
	if errors.Is(err, unix.ENODEV) {
		return Chain{Ours: true}, nil
	}
	if err != nil {
		return Chain{}, fmt.Errorf("list the programs of device %d: %w", index, err)
	}
	isOwn := func(p link.AttachedProgram) bool {
		id, ok := p.LinkID()
		return ok && id == own
	}
	at := slices.IndexFunc(q.Programs, isOwn)
	c := Chain{Ours: at >= 0}
	var beside map[link.ID]string
	for i, p := range q.Programs {
		if i == at {
			continue
		}
		if beside == nil {
			beside = linksBeside(dir, index)
		}
		id, _ := p.LinkID()
		if ofTunnel(dir, index, id) {
			continue
		}
		c.Strangers = append(c.Strangers, Stranger{Hook: hookOf(hook), Program: uint32(p.ID), Link: uint32(id),
			Name: programName(p.ID), Instance: beside[id], Before: i < at})
	}
	return c, nil
}

// ofTunnel reports whether a link is the instance's own that runs a tunnel's program on its device, or that of a trunk
// inside a VNI.
func ofTunnel(dir string, index uint32, id link.ID) bool {
	for _, of := range []string{inDir, trunkInDir} {
		if own, err := pinnedLink(filepath.Join(filepath.Dir(dir), of), index); err == nil && own == id {
			return true
		}
	}
	return false
}

func hookOf(t ebpf.AttachType) Hook {
	if t == ebpf.AttachTCXEgress {
		return Egress
	}
	return Ingress
}

// programName returns "" if the kernel reports no name.
func programName(id ebpf.ProgramID) string {
	p, err := ebpf.NewProgramFromID(id)
	if err != nil {
		return ""
	}
	defer p.Close()
	info, err := p.Info()
	if err != nil {
		return ""
	}
	return info.Name
}

// linksBeside returns the links that other instances with the same run directory have to a device with that index, in
// this network namespace or another, with the instances' names. dir is the directory in which this instance's links are
// pinned.
func linksBeside(dir string, index uint32) map[link.ID]string {
	instance, kind := filepath.Dir(dir), filepath.Base(dir)
	found := map[link.ID]string{}
	entries, err := os.ReadDir(filepath.Dir(instance))
	if err != nil {
		return found
	}
	for _, e := range entries {
		if !e.IsDir() || e.Name() == filepath.Base(instance) {
			continue
		}
		if id, err := pinnedLink(filepath.Join(filepath.Dir(instance), e.Name(), kind), index); err == nil {
			found[id] = e.Name()
		}
	}
	return found
}

// pinnedLink returns the kernel's id of the link to the device that is pinned in the directory.
func pinnedLink(dir string, index uint32) (link.ID, error) {
	l, err := link.LoadPinnedLink(filepath.Join(dir, strconv.FormatUint(uint64(index), 10)), nil)
	if err != nil {
		return 0, fmt.Errorf("open the attachment of device %d: %w", index, err)
	}
	defer l.Close()
	info, err := l.Info()
	if err != nil {
		return 0, fmt.Errorf("look at the attachment of device %d: %w", index, err)
	}
	return info.ID, nil
}

// anchor returns the position in a device's chain where the program is attached. This is the first position, because a
// program before it may consume or pass on frames that the switch would refuse; but it is after a program of another
// instance with the same run directory, whose ports would otherwise lose their traffic. Programs after it, whoever
// attached them, see the frames that continue to the host's stack or to the wire. On a trunk inside a VNI the switch
// program is after the one that turns the owner's tags into numbers.
func (l *links) anchor(index uint32) (link.Anchor, error) {
	if filepath.Base(l.dir) == linkDir {
		trunk, err := pinnedLink(filepath.Join(filepath.Dir(l.dir), trunkInDir), index)
		if err == nil && attachedHere(index, l.hook, trunk) {
			return link.AfterLinkByID(trunk), nil
		}
	}
	beside := linksBeside(l.dir, index)
	if len(beside) == 0 {
		return link.Head(), nil
	}
	q, err := link.QueryPrograms(link.QueryOptions{Target: int(index), Attach: l.hook})
	if err != nil {
		return nil, fmt.Errorf("list the programs of device %d: %w", index, err)
	}
	for _, p := range slices.Backward(q.Programs) {
		if id, ok := p.LinkID(); ok && beside[id] != "" {
			return link.AfterLinkByID(id), nil
		}
	}
	return link.Head(), nil
}
