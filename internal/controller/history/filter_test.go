package history_test

import (
	"testing"
	"time"

	"heddle/internal/controller/history"
)

func TestFilter_PassesWhatIsAskedFor(t *testing.T) {
	at := time.Unix(1000, 0)
	e := history.Entry{At: at, Who: "ann", File: "Fleet.yaml", Message: "DB moves to VLAN 30"}
	objects := []string{"portGroup dvs/db changed"}
	for name, c := range map[string]struct {
		f    history.Filter
		want bool
	}{
		"everything":         {history.Filter{}, true},
		"who":                {history.Filter{Who: "ann"}, true},
		"a part of a name":   {history.Filter{Who: "an"}, false},
		"message":            {history.Filter{Text: "db MOVES"}, true},
		"file":               {history.Filter{Text: "fleet"}, true},
		"object":             {history.Filter{Text: "DVS/db"}, true},
		"nothing":            {history.Filter{Text: "web"}, false},
		"since then":         {history.Filter{Since: at}, true},
		"since later":        {history.Filter{Since: at.Add(1)}, false},
		"all of it together": {history.Filter{Who: "ann", Text: "vlan 30", Since: at.Add(-1)}, true},
		"not all of it":      {history.Filter{Who: "jo", Text: "vlan 30"}, false},
	} {
		if got := c.f.Passes(e, objects); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if (history.Filter{Text: "dvs/db"}).Passes(e, nil) {
		t.Error("a filter finds what the caller does not see")
	}
}
