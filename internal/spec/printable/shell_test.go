package printable

import "testing"

func TestCommand(t *testing.T) {
	for _, c := range []struct {
		words []string
		want  string
	}{
		{[]string{"heddle", "port", "show", "vm1/eth0"}, "heddle port show vm1/eth0"},
		{[]string{"heddle", "port", "show", "vm 1"}, "heddle port show 'vm 1'"},
		{[]string{"echo", "it's", "$HOME", ""}, `echo 'it'\''s' '$HOME' ''`},
		{[]string{"a", "ü"}, "a 'ü'"},
	} {
		t.Run(c.want, func(t *testing.T) {
			if got := Command(c.words...); got != c.want {
				t.Errorf("%s", got)
			}
		})
	}
}
