package tree

import (
	"strings"
	"testing"
	"time"

	"heddle/internal/api"
)

func TestPortMoves(t *testing.T) {
	at := time.Date(2026, 3, 4, 5, 6, 7, 8e6, time.Local)
	s := &standIn{moves: []api.PortMove{
		{Move: "0123456789abcdef", Port: "vm", Side: api.MoveSource, Phase: "released", Peer: "esx2", Generation: 3,
			Copies: 9, Last: true, Steps: []api.MoveStep{{Phase: "prepared", At: at, Text: "it waits"},
				{Phase: "released", At: at, Text: "the port is gone here"}}},
		{Move: "m", Port: "vm", Side: api.MoveTarget, Phase: "active", Steps: []api.MoveStep{}},
	}}
	out := newConsole(t, s).must("port", "moves", "vm")
	for _, want := range []string{"vm    source  released  esx2           3  9 last",
		"2026-03-04 05:06:07.008  released",
		"source of a move to esx2", "target of a move whose other host is not known"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}
