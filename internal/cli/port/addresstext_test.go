package port

import "testing"

func TestAddressText_CountsTheRest(t *testing.T) {
	if got := addressText([]string{"10.0.0.1/24", "10.0.0.1", "a", "b", "c", "d", "a"}); got != "10.0.0.1/24,a,b,c "+
		"and 1 more" {
		t.Error(got)
	}
}
