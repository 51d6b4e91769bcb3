package tree

import (
	"slices"
	"strings"
	"testing"

	"heddle/internal/api"
)

func TestPortSilenceAndRelease(t *testing.T) {
	s := &standIn{}
	c := newConsole(t, s)
	if out := c.must("port", "silence", "vm"); !slices.Equal(s.asked, []any{api.PortMoveOf{Port: "vm"}}) ||
		!strings.Contains(out, "no other host waits for it yet") {
		t.Errorf("asked %v, said %q", s.asked, out)
	}
	s.silenced = api.PortMove{Move: "m", Peer: "esx2", Side: api.MoveSource, Phase: "stopped"}
	if out := c.must("port", "silence", "vm"); !strings.Contains(out, "its last copy goes to esx2") {
		t.Errorf("said %q", out)
	}
	s.silenced.Last = true
	if out := c.must("port", "silence", "vm"); !strings.Contains(out, "esx2 has its last copy") {
		t.Errorf("said %q", out)
	}
	if out := c.must("port", "silence", "vm", "-o", "json"); !strings.Contains(out, `"peer": "esx2"`) {
		t.Errorf("said %q", out)
	}
	s.asked = nil
	if out := c.must("port", "release", "vm"); !slices.Equal(s.asked, []any{api.PortMoveOf{Port: "vm"}}) ||
		out != "port vm is released\n" {
		t.Errorf("asked %v, said %q", s.asked, out)
	}
}
