package allpairs_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"heddle/internal/lab/allpairs"
	"heddle/internal/test/testkit"
)

// Two and four nested hosts on real devices: with MAC learning every pair gets through, each ping is answered once, and
// the matrix has each pair.
func TestAllPairsInTheLab(t *testing.T) {
	testkit.Root(t)
	testkit.Weigh(t, 3)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	all, err := allpairs.Run(ctx, allpairs.Options{RunDir: t.TempDir(), Quick: true,
		Rows: []string{"promiscuous-2", "mac-learning-4"}})
	if err != nil {
		t.Fatal(err)
	}
	r := allpairs.Report(all)
	for i, want := range []struct {
		name      string
		pairs     int
		duplicate bool
	}{{"promiscuous-2", 2, true}, {"mac-learning-4", 12, false}} {
		t.Run(want.name, func(t *testing.T) {
			seen := map[string]bool{}
			for _, p := range all[i].Pairs {
				if p.Stream <= 0 || p.Pings == 0 || p.P99 < p.P50 || p.FromUplink == "" || p.ToUplink == "" {
					t.Errorf("%+v", p)
				}
				seen[p.From+" "+p.To] = true
			}
			if name := r.Rows[i].Get("name"); len(seen) != want.pairs || name != want.name {
				t.Errorf("row %d is %v with %d pairs", i, name, len(seen))
			}
			// In promiscuous mode the articles' effect shows; with MAC learning each ping is answered once.
			replies, _ := r.Rows[i].Get("replies_per_ping").(float64)
			if want.duplicate != (replies > 1) || replies < 1 {
				t.Errorf("%v replies per ping", replies)
			}
		})
	}
	if !slices.ContainsFunc(r.Notes, func(s string) bool { return strings.HasPrefix(s, "mac-learning-4, from n4 (") }) {
		t.Errorf("no matrix: %q", r.Notes)
	}
}
