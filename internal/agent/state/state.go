// Package state defines and stores what an agent remembers across restarts: the active configuration, what commands
// made, the devices in use and how they were before, and what was announced to the physical network. One file, written
// so that a crash leaves the old or the new one whole.
package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"heddle/internal/host/hostdev"
	"heddle/internal/host/ownfile"
	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/uplinks/loops"
	"heddle/internal/uplinks/memory"
	"heddle/internal/uplinks/teaming/failover"
)

// stateFormat is the version of the state file; a later agent reads this one and every one before.
const stateFormat = 1

// State is what the agent remembers across restarts and reboots: the active configuration, and the second layer that
// is made by commands.
type State struct {
	Format int `json:"format"`
	// Config is the configuration last applied.
	Config Source `json:"config"`
	// Slice is what a controller handed the host; nil where it follows none.
	Slice *Slice `json:"slice,omitzero"`
	// Ports were connected by command.
	Ports []spec.Port `json:"ports"`
	// Overrides were set by command on top of what a port says for itself, by the port's name.
	Overrides map[string]Override `json:"overrides"`
	// Maintenance are the uplinks that commands have drained or blocked.
	Maintenance []Maintenance `json:"maintenance,omitzero"`
	// Kept is what ports had set for themselves when they were disconnected from a port group that keeps it (S10), the
	// oldest first.
	Kept []Kept `json:"kept,omitzero"`
	// Numbers are the numbers of ports (D10) and uplinks given so far.
	Numbers []Number `json:"numbers"`
	// Uses are what the ports use of their teams, so that a port without failback stays where it is over a restart.
	Uses []failover.PortUse `json:"uses,omitzero"`
	// Waits are the ports whose guests run elsewhere, or did until lately (S99); LastWait is the highest number that a
	// wait was given.
	Waits    []Wait `json:"waits,omitzero"`
	LastWait uint32 `json:"lastWait,omitzero"`
	// Expected are the guests whose ports are about to be connected, and to arrive by a migration: how the ports' names
	// begin, and when that was said.
	Expected map[string]time.Time `json:"expected,omitzero"`
	// Place says for which boot and network namespace Held counts.
	Place string `json:"place"`
	Held  []Held `json:"held"`
	// Pairs are the devices that the agent made for host ports.
	Pairs []Pair `json:"pairs,omitzero"`
	// Memory is what the conversations with the physical network remember. Its LAGs and LLDP count for Place like Held.
	memory.Memory
	// Loops are the ports that are blocked because of loops; they count for Place.
	Loops []loops.Block `json:"loops,omitzero"`
	// Released are devices no longer in use that have not been given back yet.
	Released []Held `json:"released,omitzero"`
	// Departed are how uplinks' devices were that left the host's namespace with what had been done to them, should
	// they come back.
	Departed []Held `json:"departed,omitzero"`

	// where finds Held by port; it is of the list that begins at whereIn.
	where   map[plan.PortID]*Held
	whereIn *Held
}

// Source is a configuration file's content and where it came from.
type Source struct {
	File    string `json:"file"`
	Content string `json:"content"`
	// By is what applied it: "apply /etc/heddle/heddle.yaml".
	By string `json:"by,omitzero"`
	// Seen is the digest of the file given with --config when it was last read. When the file differs at the next
	// start, it was edited since, and counts; otherwise Content does, which "heddle apply" may have made newer than the
	// file.
	Seen string `json:"seen"`
}

// Override is what a command set for one port.
type Override struct {
	Blocked   *bool  `json:"blocked,omitzero"`
	PortGroup string `json:"portGroup,omitzero"`
	// Reset: what the port had set for itself ended with its owner's connection (S10). A command that connects it may
	// set it anew.
	Reset bool `json:"reset,omitzero"`
}

// Maintenance is an uplink that a command has drained, or blocked as well. The list is replaced and not changed in
// place.
type Maintenance struct {
	ID      plan.PortID `json:"id"`
	Blocked bool        `json:"blocked,omitzero"`
	Since   time.Time   `json:"since"`
}

// Same says whether both are of one uplink and mean the same, whenever that was.
func (m Maintenance) Same(o Maintenance) bool { return m.ID == o.ID && m.Blocked == o.Blocked }

// MaintenanceOf is what a command has said about the uplink, nil for nothing.
func (s *State) MaintenanceOf(id plan.PortID) *Maintenance {
	for i := range s.Maintenance {
		if s.Maintenance[i].ID == id {
			return &s.Maintenance[i]
		}
	}
	return nil
}

// Kept is what a port had set for itself, for when it is connected to its port group again.
type Kept struct {
	ID        plan.PortID `json:"id"`
	PortGroup string      `json:"portGroup"`
	Policy    spec.Policy `json:"policy"`
}

// Keep remembers what a port had set for itself, in place of what was remembered of it. At most most ports are
// remembered.
func (s *State) Keep(k Kept, most int) {
	list := append(s.keptBut(k.ID.Name), k)
	s.Kept = list[max(0, len(list)-most):]
}

// KeptOf is what is remembered of the port, nil for nothing.
func (s *State) KeptOf(name string) *Kept {
	for i := range s.Kept {
		if s.Kept[i].ID.Name == name {
			return &s.Kept[i]
		}
	}
	return nil
}

// DropKept forgets what is remembered of the port.
func (s *State) DropKept(name string) { s.Kept = s.keptBut(name) }

// keptBut is another list, so that who has the one before can go back to it.
func (s *State) keptBut(name string) (list []Kept) {
	for _, k := range s.Kept {
		if k.ID.Name != name {
			list = append(list, k)
		}
	}
	return list
}

// On is the port with the override.
func (o Override) On(p spec.Port) spec.Port {
	if o.Blocked != nil {
		p.Blocked = o.Blocked
	}
	if o.PortGroup != "" {
		p.PortGroup = o.PortGroup
	}
	return p
}

// Texts are the overrides as a person reads them.
func (o Override) Texts() []string {
	var t []string
	if o.Blocked != nil {
		t = append(t, fmt.Sprintf("blocked=%v", *o.Blocked))
	}
	if o.PortGroup != "" {
		t = append(t, "portGroup="+o.PortGroup)
	}
	return t
}

// Number is the number of one port or uplink.
type Number struct {
	ID     plan.PortID `json:"id"`
	Number uint32      `json:"number"`
}

// Held is one device in the agent's hands, and how it was before, so that it can be given back as it was.
type Held struct {
	ID     plan.PortID `json:"id"`
	Device string      `json:"device"`
	Index  uint32      `json:"ifindex"`
	// MAC is the address of the owner's end at the time, which is the port's initial MAC where none is configured.
	MAC plan.MAC `json:"mac"`
	// Own is the device's own address, by which one made anew under its name and index is recognised.
	Own plan.MAC `json:"own,omitzero"`
	// Permanent is the address that is built into a physical device.
	Permanent plan.MAC `json:"permanent,omitzero"`
	// Made: the agent created the device.
	Made           bool `json:"made,omitzero"`
	Uplink         bool `json:"uplink,omitzero"`
	WasUp          bool `json:"wasUp,omitzero"`
	WasPromiscuous bool `json:"wasPromiscuous,omitzero"`
	WasIPv6        bool `json:"wasIPv6,omitzero"`
	// WasARPIgnore is the arp_ignore of an uplink's device before the agent set it; empty when it did not.
	WasARPIgnore string `json:"wasARPIgnore,omitzero"`
	// Offloads of an uplink's device, or of a bond's members, were on before the agent switched them off; Tuned: that
	// has been done.
	Offloads []HeldOffload `json:"offloads,omitzero"`
	Tuned    bool          `json:"tuned,omitzero"`
	// Prepared: everything done to the device on connecting it has been done.
	Prepared bool `json:"prepared,omitzero"`
}

// HeldOffload is an offload that the agent switched off.
type HeldOffload struct {
	Device    string          `json:"device"`
	Index     uint32          `json:"ifindex"`
	Own       plan.MAC        `json:"own,omitzero"`
	Permanent plan.MAC        `json:"permanent,omitzero"`
	Offload   hostdev.Offload `json:"offload"`
}

// Is reports whether the device that has the index of the one in hand is that one: under its name or, when somebody
// renamed it, by its own address or the one that is built in.
func (h Held) Is(d hostdev.Device) bool { return is(d, h.Index, h.Device, h.Own, h.Permanent) }

// Is reports whether the device is the one whose offload was switched off.
func (o HeldOffload) Is(d hostdev.Device) bool { return is(d, o.Index, o.Device, o.Own, o.Permanent) }

func is(d hostdev.Device, index uint32, name string, own, permanent plan.MAC) bool {
	return d.Index == index && (d.Name == name || !own.IsZero() && d.MAC == own || !permanent.IsZero() &&
		d.Permanent == permanent)
}

// Of finds the device of a port. The index is made again when Held is another list: a thousand ports ask several times
// a change.
func (s *State) Of(id plan.PortID) *Held {
	if len(s.Held) == 0 {
		return nil
	}
	if s.whereIn != &s.Held[0] || len(s.where) != len(s.Held) {
		s.whereIn, s.where = &s.Held[0], make(map[plan.PortID]*Held, len(s.Held))
		for i := range s.Held {
			s.where[s.Held[i].ID] = &s.Held[i]
		}
	}
	return s.where[id]
}

// PortNumbers are the numbers given so far, by port or uplink.
func (s *State) PortNumbers() map[plan.PortID]uint32 {
	m := make(map[plan.PortID]uint32, len(s.Numbers))
	for _, n := range s.Numbers {
		m[n.ID] = n.Number
	}
	return m
}

// MoveTo begins anew in another boot or network namespace: the devices in hand, and what hangs on them, are gone with
// the place before.
func (s *State) MoveTo(place string) {
	s.Pairs = nil
	s.Place, s.Held, s.Released, s.Departed, s.Uses, s.Assigned, s.LAGs, s.LLDP, s.Loops =
		place, nil, nil, nil, nil, nil, nil, nil, nil
	s.endWaits()
}

// Depart remembers how an uplink's device was that left the host's namespace, in place of what was remembered for that
// uplink.
func (s *State) Depart(h Held) {
	s.Departed = append(s.departedBut(h.ID), h)
}

// Return gives, and forgets, how the device was that the uplink had before it left, when this is the one.
func (s *State) Return(id plan.PortID, index uint32, own plan.MAC) (h Held, ok bool) {
	i := slices.IndexFunc(s.Departed, func(h Held) bool { return h.ID == id })
	if i < 0 {
		return h, false
	}
	h = s.Departed[i]
	s.Departed = s.departedBut(id)
	return h, h.Index == index && h.Own == own
}

// departedBut is another list, so that who keeps the one before can go back to it.
func (s *State) departedBut(id plan.PortID) (list []Held) {
	for _, h := range s.Departed {
		if h.ID != id {
			list = append(list, h)
		}
	}
	return list
}

// Store keeps the state in a directory.
type Store struct {
	dir  string
	last written // what the file holds
}

// Open makes the directory, readable by root alone, when it is missing, and refuses one that others can change.
func Open(dir string) (*Store, error) {
	if err := ownfile.MakeDir(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open the state directory: %w", err)
	}
	return &Store{dir: dir}, nil
}

// Peek reads a state for somebody who is not its agent; nothing is made where there is none.
func Peek(dir string) (*State, error) { return (&Store{dir: dir}).Load() }

// Dir is the directory, for what else an agent keeps on disk.
func (s *Store) Dir() string { return s.dir }

func (s *Store) path() string { return filepath.Join(s.dir, "state.json") }

// Load reads the state; without a file it is empty. A file that cannot be read is an error: to start without it would
// forget which ports were connected.
func (s *Store) Load() (*State, error) {
	st := &State{Overrides: map[string]Override{}}
	b, err := ownfile.Read(s.path())
	if errors.Is(err, os.ErrNotExist) {
		st.Format = stateFormat
		return st, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the agent's state: %w", err)
	}
	if err = ownfile.CheckSeal(b); err == nil {
		err = json.Unmarshal(b, st)
	}
	if err == nil && st.Format < 1 {
		err = errors.New("it has no format")
	}
	if err != nil {
		return nil, fmt.Errorf("the agent's state in %s is damaged (%w): restore the file, or remove it to start "+
			"without the ports connected by command", s.path(), err)
	}
	if st.Format > stateFormat {
		return nil, fmt.Errorf("the agent's state in %s has format %d, this program knows %d: use the newer heddle "+
			"program", s.path(), st.Format, stateFormat)
	}
	s.last, st.Format = written{text: b}, stateFormat
	if st.Overrides == nil {
		st.Overrides = map[string]Override{}
	}
	return st, nil
}

// Save replaces the state file, where anything changed, so that a crash at any instant leaves the old or the new one
// whole.
func (s *Store) Save(st *State) error {
	next, err := s.Stage(st)
	if err != nil {
		return err
	}
	return next.Commit()
}

// Remove forgets everything.
func (s *Store) Remove() error { return os.RemoveAll(s.dir) }
