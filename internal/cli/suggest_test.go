package cli

import (
	"testing"
)

func TestLettersApart(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"history", "history", 0}, {"history", "hixtory", 1}, {"rollback", "rolbak", 2}, {"", "ab", 2}, {"ä", "a", 1}} {
		if got := lettersApart(c.a, c.b); got != c.want {
			t.Errorf("%s and %s: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
