package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"heddle/internal/host/ownfile"
	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/uplinks/loops"
	"heddle/internal/uplinks/memory"
	"heddle/internal/uplinks/teaming/failover"
)

// stateFormat is the version of the state file; an agent reads its own version and all earlier ones.
const stateFormat = 1

// State is what the agent remembers across restarts and reboots: the active configuration, and the second layer, which
// commands make.
type State struct {
	Format int `json:"format"`
	// Config is the configuration that was applied last.
	Config Source `json:"config"`
	Definition
	// Ports are the ports that were connected by command.
	Ports []spec.Port `json:"ports"`
	// Overrides were set by command and take precedence over the port's own settings; by port name.
	Overrides map[string]Override `json:"overrides"`
	// Maintenance are the uplinks that commands have drained or blocked.
	Maintenance []Maintenance `json:"maintenance,omitzero"`
	// Kept is what ports had set for themselves when they were disconnected from a port group that keeps such settings
	// (S10), the oldest first.
	Kept []Kept `json:"kept,omitzero"`
	// NICs are the adapters of VMs that are connected, or have static ports. The list is replaced and not changed in
	// place.
	NICs []NIC `json:"nics,omitzero"`
	// GivenUp are the adapters whose static ports were given up by command a while ago. The list is replaced, too.
	GivenUp []GivenUp `json:"givenUp,omitzero"`
	// Numbers are the numbers given to ports (D10) and uplinks so far.
	Numbers []Number `json:"numbers"`
	// Uses are the uplinks that the ports use, so that a port without failback keeps its uplink across a restart.
	Uses []failover.PortUse `json:"uses,omitzero"`
	// Waits are the ports whose guests run elsewhere, or did until lately (S99); LastWait is the highest number given
	// to a wait.
	Waits    []Wait `json:"waits,omitzero"`
	LastWait uint32 `json:"lastWait,omitzero"`
	// Travels are the adapters of VMs that the host has or had ports for, with their moves from host to host (S100).
	Travels Travels `json:"travels,omitzero"`
	// Goods is what came with ports from other hosts (S79); valid for Place, like the counters in the kernel.
	Goods []Goods `json:"goods,omitzero"`
	// Expected are the guests whose ports are about to be connected for a migration to this host: the prefix of the
	// ports' names, and when the guest was announced.
	Expected map[string]time.Time `json:"expected,omitzero"`
	// Forced are those of them whose ports are connected whatever this host lacks.
	Forced map[string]bool `json:"forced,omitzero"`
	Devices
	// Memory is what the protocols on the uplinks remember. Its LAGs and LLDP are valid for Place, like Held.
	memory.Memory
	// Loops are the ports that are blocked because of loops; valid for Place.
	Loops []loops.Block `json:"loops,omitzero"`
}

// Source is the content of a configuration file, and where it came from.
type Source struct {
	File    string `json:"file"`
	Content string `json:"content"`
	// By is the command that applied it: "apply /etc/heddle/heddle.yaml".
	By string `json:"by,omitzero"`
	// Restores is the number of the version of the history that it brought back; 0 for a configuration of its own.
	Restores int `json:"restores,omitzero"`
	// Seen is the digest of the file given with --config when it was last read. If the file differs at the next start,
	// it was edited since, and is used; otherwise Content is used, which "heddle apply" may have made newer than the
	// file.
	Seen string `json:"seen"`
}

// Override is what a command set for one port.
type Override struct {
	Blocked   *bool  `json:"blocked,omitzero"`
	PortGroup string `json:"portGroup,omitzero"`
	// Reset: the port's own settings ended with its owner's connection (S10). A command that connects the port may set
	// them anew.
	Reset bool `json:"reset,omitzero"`
}

// Maintenance is an uplink that a command has drained, or blocked as well. The list is replaced and never changed in
// place.
type Maintenance struct {
	ID      plan.PortID `json:"id"`
	Blocked bool        `json:"blocked,omitzero"`
	Since   time.Time   `json:"since"`
}

// Same reports whether both are about the same uplink and mean the same, whenever they were set.
func (m Maintenance) Same(o Maintenance) bool { return m.ID == o.ID && m.Blocked == o.Blocked }

// MaintenanceOf returns the maintenance of the uplink by command, nil if there is none.
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

// Keep remembers what a port had set for itself, and replaces what was remembered of it in that port group. At most
// most connections are remembered.
func (s *State) Keep(k Kept, most int) {
	list := append(s.keptBut(k.ID, k.PortGroup), k)
	s.Kept = list[max(0, len(list)-most):]
}

// KeptOf returns what is remembered of the port in a port group, nil for nothing.
func (s *State) KeptOf(port plan.PortID, group string) *Kept {
	for i := range s.Kept {
		if s.Kept[i].ID == port && s.Kept[i].PortGroup == group {
			return &s.Kept[i]
		}
	}
	return nil
}

// DropKept removes what is remembered of the port in a port group.
func (s *State) DropKept(port plan.PortID, group string) { s.Kept = s.keptBut(port, group) }

// keptBut returns a new list, so that a caller that holds the earlier list can return to it.
func (s *State) keptBut(port plan.PortID, group string) (list []Kept) {
	for _, k := range s.Kept {
		if k.ID != port || k.PortGroup != group {
			list = append(list, k)
		}
	}
	return list
}

// On returns the port with the override applied.
func (o Override) On(p spec.Port) spec.Port {
	if o.Blocked != nil {
		p.Blocked = o.Blocked
	}
	if o.PortGroup != "" {
		p.PortGroup = o.PortGroup
	}
	return p
}

// Texts returns the overrides as texts for people.
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

// PortNumbers returns the numbers given so far, by port or uplink.
func (s *State) PortNumbers() map[plan.PortID]uint32 {
	m := make(map[plan.PortID]uint32, len(s.Numbers))
	for _, n := range s.Numbers {
		m[n.ID] = n.Number
	}
	return m
}

// MoveTo starts anew in another boot or network namespace: the held devices, and what depends on them, are gone with
// the earlier place.
func (s *State) MoveTo(place string) {
	s.Pairs, s.Goods, s.Given = nil, nil, nil
	s.Place, s.Held, s.Released, s.Departed, s.Uses, s.Assigned, s.LAGs, s.LLDP, s.Loops =
		place, nil, nil, nil, nil, nil, nil, nil, nil
	s.endWaits()
}

// Store stores the state in a directory.
type Store struct {
	dir  string
	last written // what the file holds
}

// Open makes the directory, readable by root alone, if it is missing, and refuses one that others can change.
func Open(dir string) (*Store, error) {
	if err := ownfile.MakeDir(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open the state directory: %w", err)
	}
	return &Store{dir: dir}, nil
}

// Peek reads a state for a process other than its agent; it creates nothing.
func Peek(dir string) (*State, error) { return (&Store{dir: dir}).Load() }

// Dir returns the directory, for other files of the agent.
func (s *Store) Dir() string { return s.dir }

func (s *Store) path() string { return filepath.Join(s.dir, "state.json") }

// Load reads the state; without a file the state is empty. A file that cannot be read is an error: starting without it
// would forget which ports were connected.
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

// Save replaces the state file if anything changed. A crash at any instant leaves the old or the new file whole.
func (s *Store) Save(st *State) error {
	next, err := s.Stage(st)
	if err != nil {
		return err
	}
	return next.Commit()
}

// Remove deletes the directory.
func (s *Store) Remove() error {
	return errors.Join(os.RemoveAll(s.dir), ownfile.SyncDir(filepath.Dir(s.dir)))
}
