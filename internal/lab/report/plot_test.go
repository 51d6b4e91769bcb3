package report

import (
	"fmt"
	"math"
	"testing"
)

func TestRowsAreNamedByAsLittleAsTellsThemApart(t *testing.T) {
	text := func(values ...any) Row {
		r := Row{{Name: "hidden", Value: "x", Hidden: true}}
		for i, v := range values {
			r = append(r, Field{Name: fmt.Sprint(i), Value: v})
		}
		return r
	}
	for want, rows := range map[string][]Row{
		"[a b]":     {text("a", "x", 1.0), text("b", "y", 2.0)},
		"[a x a y]": {text("a", "x", 1.0), text("a", "y", "never needed")},
		"[1.00 64]": {text(1.0, "x"), {{Name: "size", Value: 64, Unit: Count}}},
		"[a a]":     {text("a", 1.0, "behind a number"), text("a", 2.0, "too")},
		"[ ]":       {{}, text()},
	} {
		t.Run(want, func(t *testing.T) {
			if got := fmt.Sprint((&Report{Rows: rows}).Labels()); got != want {
				t.Errorf("labels %s, want %s", got, want)
			}
		})
	}
}

func TestNumbersAreSpreadsToo(t *testing.T) {
	for _, v := range []any{7, int64(7), uint64(7), 7.0, Spread{7, 7, 7, 7, 7, 1}} {
		if s, ok := (Field{Value: v}).Numeric(); !ok || s != (Spread{7, 7, 7, 7, 7, 1}) {
			t.Errorf("%T: %+v, %v", v, s, ok)
		}
	}
	for _, v := range []any{nil, "7", true, math.NaN(), math.Inf(1), Spread{}} {
		if s, ok := (Field{Value: v}).Numeric(); ok {
			t.Errorf("%v is the number %+v", v, s)
		}
	}
}

func TestAReportWithoutPlotsShowsItsSpreadsAndRates(t *testing.T) {
	r := example()
	r.Rows = append(r.Rows, Row{
		{Name: "peer", Value: "bridge"}, {Name: "gap", Title: "longest gap", Value: 0.5, Unit: Seconds},
		{Name: "lost", Value: 3, Unit: Count}, {Name: "plain", Value: 1.5},
		{Name: "hidden", Value: 1.5, Unit: Seconds, Hidden: true},
	})
	var got []string
	for _, p := range r.Drawn() {
		got = append(got, p.Title+"="+p.Series[0].Field)
	}
	if want := "[stream=bps brief=brief longest gap=gap]"; fmt.Sprint(got) != want {
		t.Errorf("drawn are %v, want %s", got, want)
	}
	r.Rows = append(r.Rows, Row{{Name: "peer", Value: "ovs"}, {Name: "gap", Title: "longest gap", Value: 5.0,
		Unit: BitsPerSecond}})
	if last := r.Drawn()[3]; len(r.Drawn()) != 4 || last.Title != "longest gap, bit/s" || last.Unit != BitsPerSecond ||
		r.Drawn()[2].Title != "longest gap, s" {
		t.Errorf("a column of two units is drawn as %+v", r.Drawn()[2:])
	}
	r.Plots = []Plot{}
	if n := len(r.Drawn()); n != 0 {
		t.Errorf("%d plots of a report that wants none", n)
	}
}
