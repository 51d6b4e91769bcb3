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

// What passes is never skipped, whatever characters it has; what has another name or lacks a plain text is skipped.
func TestFilter_SkipsWhatCannotPass(t *testing.T) {
	all := []history.Entry{{Who: "ann", Message: "DB moves to VLAN 30"}, {Who: "an", File: "Fleet <b>&\"x\".yaml"},
		{Who: `o"hara\`, Message: "\u212aelvin\tand\u2028İ"}, {Who: "jo<e>", Objects: []string{"portGroup dvs/db changed"}}}
	filters := []history.Filter{{Who: "ann"}, {Who: "an"}, {Who: `o"hara\`}, {Who: "jo<e>"}, {Text: "vlan 30"},
		{Text: "<b>"}, {Text: `&"x"`}, {Text: "k"}, {Text: "i"}, {Text: "\tand"}, {Text: "DVS/db"}, {Who: "ann", Text: "db"}, {}}
	skipped := 0
	for _, e := range all {
		record, err := history.Encode(e, []byte("packed"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range filters {
			skips := f.Skips(record)
			if skips {
				skipped++
			}
			if f.Passes(e, e.Objects) && skips {
				t.Errorf("%+v skips %+v, which passes", f, e)
			}
		}
	}
	if skipped < len(all)*4 {
		t.Errorf("%d are skipped of %d", skipped, len(all)*len(filters))
	}
	record, err := history.Encode(all[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	if (history.Filter{Who: "jo", Since: time.Unix(1, 0)}).Skips(record) {
		t.Error("a change is skipped whose time counts")
	}
}
