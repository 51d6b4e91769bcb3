package rpc

import (
	"fmt"
	"strings"
	"testing"

	"heddle/internal/controller/pipeline"
)

// having are the parts that have a hook, in order.
func having[Hook any](parts []pipeline.Part) string {
	var names []string
	for _, part := range parts {
		if _, has := part.(Hook); has {
			name := fmt.Sprintf("%T", part)
			names = append(names, name[strings.LastIndex(name, ".")+1:])
		}
	}
	return strings.Join(names, " ")
}

// Which part does what before which other one is a contract: nobody who may not change the definition learns whether it
// fits; hosts are asked before anything is refused by what they report; all hosts are ready before anything is written
// that undoes a change; a conflict about the book of addresses comes before others, since it is tried again.
func TestChangeParts_TheOrderInEachStage(t *testing.T) {
	parts := people{newController(t).Server}.changeParts()
	for _, c := range []struct{ stage, got, want string }{
		{"parse", having[pipeline.Parser](parts), "Change"},
		{"open", having[pipeline.Opener](parts), "importGate Sizes"},
		{"judge", having[pipeline.Judge](parts), "editRights knownKinds Ends"},
		{"weigh", having[pipeline.Weigher](parts),
			"hostReports Ends groupUsers Sizes hostAddresses hostEffects Change"},
		{"foretell", having[pipeline.Foreteller](parts), "hostEffects agreed Change"},
		{"satisfied", having[pipeline.Satisfied](parts), "Sizes Change Closed"},
		{"prepare", having[pipeline.Preparer](parts), "hostAddresses agreed Change Closed " +
			"changeRecord"},
		{"changes", having[pipeline.Contributor](parts), "hostAddresses agreed Change Closed " +
			"changeRecord Work importMarks"},
		{"tell", having[pipeline.Teller](parts), "agreed Change changeRecord"},
		{"settle", having[pipeline.Settler](parts), "Work"},
		{"close", having[pipeline.Closer](parts), "Ends"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s\nwant %s", c.stage, c.got, c.want)
		}
	}
}
