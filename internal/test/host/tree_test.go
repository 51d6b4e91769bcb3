package host

import (
	"encoding/hex"
	"strings"
	"testing"

	"heddle/internal/api"
	"heddle/internal/plan/problem"
	"heddle/internal/test/testkit/cable"
)

// A physical switch whose port does not forward yet is told, and that it forwards, too.
func TestS172_APhysicalPortThatDoesNotForwardIsAProblem(t *testing.T) {
	h := newHost(t)
	wire := h.wired(1)
	h.start("--config", h.file("heddle.yaml", `
switches:
- name: lab
  uplinks: [{name: uplink1, device: up1}]
  portGroups: [{name: web}]
`))
	h.await("the uplink is up", func() bool { return h.uplink("uplink1").State == api.Up })
	end := cable.Open(t, wire, "far1")
	bpdu := func(flags string) []byte {
		b, err := hex.DecodeString("0180c20000000200000000020027" + "424203" + "0000" + "02" + "02" + flags +
			"8000020000000001" + "00000000" + "8001020000000002" + "8003" + "0000" + "1400" + "0200" + "0f00" + "00")
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	h.await("the port discards", func() bool {
		end.Send(bpdu("0e"))
		return h.uplink("uplink1").ReasonCode == problem.STPDiscards
	})
	u := h.uplink("uplink1")
	want := "spanning tree: bridge 32769,02:00:00:00:00:02 at the other end does not forward by this link yet"
	if u.Reason != want || u.State != api.Up || u.SpanningTree.Root != "32768,02:00:00:00:00:01" {
		t.Errorf("%s %q %+v", u.State, u.Reason, u.SpanningTree)
	}
	for _, command := range []string{"status", "advise"} {
		out, _, status := h.heddle(command)
		if status != 1 || !strings.Contains(strings.Join(strings.Fields(out), " "), "spanning tree: bridge 32769") {
			t.Errorf("%s %d:\n%s", command, status, out)
		}
	}
	h.await("the port forwards", func() bool {
		end.Send(bpdu("3c"))
		u := h.uplink("uplink1")
		return u.Reason == "" && u.SpanningTree != nil && !u.SpanningTree.Discards
	})
	if out := h.must("uplink", "show", "uplink1"); !strings.Contains(strings.Join(strings.Fields(out), " "),
		"spanning tree: bridge 32769,02:00:00:00:00:02 port 3, root 32768,02:00:00:00:00:01; it forwards") {
		t.Errorf("uplink show:\n%s", out)
	}
}
