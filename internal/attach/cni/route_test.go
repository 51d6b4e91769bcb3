package cni

import (
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
	"golang.org/x/sys/unix"

	"heddle/internal/test/testkit"
)

// Several routes of one answer to a destination are several ways to it; a route of another interface is in the way.
func TestRoutesAreAppendedToThoseOfTheSameAnswerAlone(t *testing.T) {
	for _, c := range []struct {
		name, other string   // other is the route of another interface
		routes      []string // destination and gateway
		want        []string // or none: it fails
	}{
		{"two ways", "", []string{"203.0.113.0/24 192.0.2.5", "203.0.113.0/24 192.0.2.6"},
			[]string{"203.0.113.0/24 via 192.0.2.5 dev eth0", "203.0.113.0/24 via 192.0.2.6 dev eth0"}},
		{"two ways of IPv6", "", []string{"2001:db8:9::/48 2001:db8::5", "2001:db8:9::/48 2001:db8::6"},
			[]string{"via 2001:db8::5 dev eth0", "via 2001:db8::6 dev eth0"}},
		{"in the way of the first", "203.0.113.0/24", []string{"203.0.113.0/24 192.0.2.5"}, nil},
		{"in the way of the second", "203.0.113.0/24", []string{"198.51.100.0/24 192.0.2.5",
			"203.0.113.0/24 192.0.2.5"}, nil},
		{"in the way of the first of two ways", "203.0.113.0/24", []string{"203.0.113.0/24 192.0.2.5",
			"203.0.113.0/24 192.0.2.6"}, nil},
		{"in the way of IPv6", "2001:db8:9::/48", []string{"2001:db8:9::/48 2001:db8::5"}, nil},
		{"not in the way", "203.0.113.0/24 metric 5", []string{"203.0.113.0/24 192.0.2.5"},
			[]string{"203.0.113.0/24 via 192.0.2.5 dev eth0", "203.0.113.0/24 dev other"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ns := testkit.NS(t, "routes")
			ip := func(line string) string {
				t.Helper()
				out, err := ns.Output("ip", strings.Fields(line)...)
				if err != nil {
					t.Fatalf("ip %s: %v\n%s", line, err, out)
				}
				return string(out)
			}
			for _, device := range []string{"eth0", "other"} {
				ip("link add " + device + " type veth peer name " + device + "-far")
				ip("link set " + device + " up")
				ip("link set " + device + "-far up")
			}
			ip("addr add 192.0.2.1/24 dev eth0")
			ip("addr add 2001:db8::1/64 dev eth0 nodad")
			if c.other != "" {
				ip("route add " + c.other + " dev other")
			}
			s, err := openSandbox(ns.Path())
			if err != nil {
				t.Fatal(err)
			}
			defer s.close()
			l, err := s.LinkByName("eth0")
			if err != nil {
				t.Fatal(err)
			}
			err = s.addRoutes(answerOf(t, c.routes), l.Attrs().Index)
			if c.want == nil && !errors.Is(err, unix.EEXIST) || c.want != nil && err != nil {
				t.Errorf("error: %v", err)
			}
			have := ip("-4 route") + ip("-6 route")
			for _, want := range c.want {
				if !strings.Contains(have, want) {
					t.Errorf("the container lacks %q:\n%s", want, have)
				}
			}
		})
	}
}

// answerOf is an IPAM plugin's answer with routes "destination gateway".
func answerOf(t *testing.T, routes []string) *current.Result {
	t.Helper()
	r := &current.Result{}
	for _, text := range routes {
		dst, gateway, _ := strings.Cut(text, " ")
		_, to, err := net.ParseCIDR(dst)
		if err != nil {
			t.Fatal(err)
		}
		r.Routes = append(r.Routes, &types.Route{Dst: *to, GW: net.ParseIP(gateway)})
	}
	return r
}
