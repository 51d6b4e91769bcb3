package cli

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A column is left out where that is enough, before any name is shortened; in a pipe nothing is.
func TestTable_LeavesColumnsOut(t *testing.T) {
	for _, row := range []struct {
		room int
		want string
	}{
		{0, "A         NAME  X\nsame      n1    1\nsame      n2    1\n"},
		{17, "A         NAME  X\nsame      n1    1\nsame      n2    1\n"},
		{16, "NAME  X\nn1    1\nn2    1\n"},
		{6, "NAME\nn1\nn2\n"},
	} {
		t.Run(fmt.Sprint(row.room), func(t *testing.T) {
			tab := &Table{Head: []string{"A       ", "NAME", "X"}, Keep: map[int]bool{0: true},
				Names:  map[int]bool{1: true},
				Narrow: []func(*Table){LeaveOutTheOnly("NAME"), LeaveOutTheOnly("A       "), LeaveOut("X")}}
			tab.Add("same", "n1", "1")
			tab.Add("same", "n2", "1")
			var b strings.Builder
			if err := tab.Write(screen{&b, row.room}); err != nil {
				t.Fatal(err)
			}
			lines := slices.Collect(strings.Lines(row.want))
			for i := range lines {
				lines[i] = strings.TrimRight(lines[i], " \n") + "\n"
			}
			if got := b.String(); got != strings.Join(lines, "") {
				t.Errorf("%q, want %q", got, row.want)
			}
		})
	}
}

func TestTable_ShortensNamesLast(t *testing.T) {
	tab := &Table{Head: []string{"NAME", "TEXT"}, Names: map[int]bool{0: true}}
	tab.Add(strings.Repeat("n", 40), strings.Repeat("t", 60))
	for _, row := range []struct {
		room       int
		name, text int
	}{{0, 40, 60}, {200, 40, 60}, {80, 40, 38}, {50, 40, 8}, {40, 30, 8}, {10, 8, 8}} {
		t.Run(fmt.Sprint(row.room), func(t *testing.T) {
			if d := cmp.Diff([]int{row.name, row.text}, tab.widths(row.room)); d != "" {
				t.Error(d)
			}
		})
	}
}
