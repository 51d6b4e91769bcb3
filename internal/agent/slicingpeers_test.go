package agent

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"heddle/internal/spec"
)

// TestS157_OthersKeepNoHostFromLeaving: the host's own configuration has as many peers as a file may list, those that
// it may list, and none where they do not go together. The log says what is left out.
func TestS157_OthersKeepNoHostFromLeaving(t *testing.T) {
	whole := parse(t, `switches:
- name: prod
  tunnel: {endpoints: [{address: 192.0.2.1}]}
  portGroups: [{name: vms, overlay: {vni: 5000}}]
`)
	var many []spec.TunnelPeer
	for i := range spec.MaxTunnelPeers + 3 {
		many = append(many, spec.TunnelPeer{Name: fmt.Sprint("host", i),
			Address: fmt.Sprintf("10.1.%d.%d", i/250, i%250+1)})
	}
	for _, c := range []struct {
		what  string
		peers []spec.TunnelPeer
		want  int
		said  string
	}{
		{"a large cluster", many, spec.MaxTunnelPeers, "host1026 10.1.4.27"},
		{"addresses that no file lists", []spec.TunnelPeer{{Name: "a", Address: "127.0.0.1"},
			{Name: "b", Address: "fe80::1"}, {Name: "c", Address: "10.1.0.1"}}, 1, "a 127.0.0.1"},
		{"a name that no file has", []spec.TunnelPeer{{Name: "a!b", Address: "10.1.0.1"},
			{Name: "c", Address: "10.1.0.2"}}, 1, "a!b 10.1.0.1"},
		{"one address twice", []spec.TunnelPeer{{Name: "a", Address: "10.1.0.1"}, {Name: "b", Address: "10.1.0.1"}}, 0,
			"already"},
		{"nothing wrong", many[:5], 5, ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			var log bytes.Buffer
			sl := &slicing{shared: &shared{log: slog.New(slog.NewTextHandler(&log, nil))}}
			cfg, text, err := sl.ownConfig(whole, func(string) []spec.TunnelPeer { return c.peers })
			if err != nil {
				t.Fatal(err)
			}
			if _, err := spec.Parse(afterLeaving, text); err != nil {
				t.Error(err)
			}
			if n := len(cfg.Switches[0].Tunnel.Peers); n != c.want {
				t.Errorf("it has %d peers, want %d", n, c.want)
			}
			if said := log.String(); !strings.Contains(said, c.said) || c.said == "" && said != "" {
				t.Errorf("the log does not say %q: %s", c.said, said)
			}
		})
	}
}
