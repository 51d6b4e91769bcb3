package health

import (
	"fmt"
	"strings"
	"testing"
)

// TestS177_AHostNamesAFewOfThoseWithItsEndpoint: an address that all hosts have does not fill the list of hosts.
func TestS177_AHostNamesAFewOfThoseWithItsEndpoint(t *testing.T) {
	var shared []SharedEndpoint
	for i := range 100 {
		shared = append(shared, SharedEndpoint{"192.0.2.1", "h0", fmt.Sprint("h", i+1)})
	}
	by := Shared(shared)
	said := by["h0"]
	if len(said) != mostNamed+1 || !strings.HasPrefix(said[mostNamed], "and 95 more endpoints") {
		t.Errorf("h0: %q", said)
	}
	if said := by["h100"]; len(said) != 1 || !strings.Contains(said[0], "h0") {
		t.Errorf("h100: %q", said)
	}
	if found := Endpoints(shared); len(found) != mostNamed+1 {
		t.Errorf("findings: %+v", found)
	}
}
