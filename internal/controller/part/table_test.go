package part

import (
	"slices"
	"testing"

	controllerv1 "heddle/api/heddle/controller/v1"
)

// heard notes what it is called for.
type heard struct{ all *[]string }

func (h heard) Joined(id, name string) { *h.all = append(*h.all, "joined "+id+" "+name) }
func (h heard) Hear(id string, _ *Conn, _ *controllerv1.FollowSliceRequest) {
	*h.all = append(*h.all, "hear "+id)
}

// speaks has something to say, or nothing.
type speaks bool

func (s speaks) Remove(string) {}
func (s speaks) Objects(_ string, _ *Conn, m Message) {
	if s {
		m().Ping++
	}
}

// A part is called for the hooks that it has, and a message is made when somebody has something to say.
func TestTable(t *testing.T) {
	var all []string
	table := Of(heard{&all}, speaks(false))
	table.Joined("h1", "esx1")
	table.Remove("h1")
	table.DefinitionChanged()
	table.Connected("h1", nil, nil)
	table.Hear("h1", nil, nil)
	table.Disconnected("h1", nil)
	if want := []string{"joined h1 esx1", "hear h1"}; !slices.Equal(all, want) {
		t.Errorf("%q, not %q", all, want)
	}
	if m := table.Objects("h1", nil, nil); m != nil {
		t.Errorf("a message without content: %v", m)
	}
	if m := Of(speaks(true), speaks(true)).Objects("h1", nil, nil); m.GetPing() != 2 {
		t.Errorf("%v", m)
	}
}
