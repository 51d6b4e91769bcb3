package top

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// A narrow window leaves columns out, and cuts neither a number nor the reason of a drop.
func TestANarrowWindowLeavesColumnsOut(t *testing.T) {
	const all = "IN bit/s OUT bit/s IN pkt/s OUT pkt/s BCAST/s DROP/s DROPS LAST DROP"
	for _, row := range []struct {
		width int
		sort  Column
		heads string
	}{
		{120, BitsIn, strings.Replace(all, "IN bit/s", "IN bit/s↓", 1)},
		{106, BitsIn, strings.Replace(all, "IN bit/s", "IN bit/s↓", 1)},
		{105, BitsIn, "IN bit/s↓ OUT bit/s IN pkt/s OUT pkt/s BCAST/s DROP/s LAST DROP"},
		{90, BitsIn, "IN bit/s↓ OUT bit/s IN pkt/s BCAST/s DROP/s LAST DROP"},
		{80, BitsIn, "IN bit/s↓ OUT bit/s BCAST/s DROP/s LAST DROP"},
		{80, Drops, "IN bit/s BCAST/s DROP/s DROPS↓ LAST DROP"},
		{80, PacketsIn, "IN bit/s IN pkt/s↓ BCAST/s DROP/s LAST DROP"},
		{80, Unknown, "IN bit/s BCAST/s UNKNOWN/s↓ DROP/s LAST DROP"},
	} {
		t.Run(fmt.Sprintf("%d by %s", row.width, headings[row.sort]), func(t *testing.T) {
			m := running(5)
			m.Update(reading(5, 3, 3e9, map[int]uint64{3: 7}), start.Add(4*time.Second))
			m.Width, m.Sort = row.width, row.sort
			lines := texts(m)
			if got := strings.Join(strings.Fields(lines[above-1])[1:], " "); got != row.heads {
				t.Errorf("%s, want %s", got, row.heads)
			}
			if text := strings.Join(lines, "\n"); !strings.Contains(text, "in forged-transmit 3s") {
				t.Errorf("the reason is cut:\n%s", text)
			}
			for _, l := range lines {
				if n := utf8.RuneCountInString(l); n > row.width {
					t.Errorf("%d columns: %s", n, l)
				}
			}
		})
	}
}
