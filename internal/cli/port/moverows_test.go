package port

import (
	"strings"
	"testing"
	"time"

	"heddle/internal/api"
)

// A port's moves are told in lines, the last one first.
func TestPortMoves_Rows(t *testing.T) {
	at := time.Date(2026, 3, 4, 5, 6, 7, 8e6, time.Local)
	moves := []api.PortMove{
		{Move: "0123456789abcdef", Port: "vm", Side: api.MoveSource, Phase: "released", Peer: "esx2", Generation: 3,
			Copies: 9, Last: true, Steps: []api.MoveStep{{Phase: "prepared", At: at, Text: "it waits"},
				{Phase: "released", At: at, Text: "the port is gone here"}}},
		{Move: "m", Port: "vm", Side: api.MoveTarget, Phase: "active", Steps: []api.MoveStep{}},
	}
	if text := lastMove(moves); !strings.Contains(text, "its last copy has not come") {
		t.Errorf("%q", text)
	}
	if rows := moveRows(moves); len(rows) != 2 || rows[0][0] != "last move" || rows[1][0] != "earlier move" ||
		!strings.HasPrefix(rows[1][1], "released (source of a move to esx2)") {
		t.Errorf("%q", rows)
	}
	if rows := moveRows(nil); len(rows) != 1 || rows[0][1] != "" {
		t.Errorf("without moves: %q", rows)
	}
	if text := lastMove(moves[:1]); !strings.HasPrefix(text, "released (source of a move to esx2)") {
		t.Errorf("%q", text)
	}
}
