package host

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"heddle/internal/api"
	"heddle/internal/test/testkit"
)

// asked is what the agent answers to a call as the page makes it.
func (h *host) asked(headers map[string]string, call, body string) (status int, text string) {
	h.t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(h.dir, "run", h.name+".sock"))
		}}}
	r, err := http.NewRequestWithContext(h.t.Context(), http.MethodPost, "http://agent/heddle.agent.v1."+call,
		strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	resp, err := client.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// The request of the page is refused where the guest lacks something, prepares a port without that, and the other calls
// cancel and activate it; each may be repeated.
func TestThePageForManagersDoesWhatItSays(t *testing.T) {
	h := newHost(t)
	text := page(t, "docs/how-to/many-hosts/write-a-manager.md")
	_, rest, _ := strings.Cut(text, "```json\n")
	body, _, _ := strings.Cut(rest, "```")
	headers := map[string]string{}
	for _, m := range regexp.MustCompile(`-H '([^:']+): ([^']+)'`).FindAllStringSubmatch(text, -1) {
		headers[m[1]] = m[2]
	}
	var q map[string]any
	if err := json.Unmarshal([]byte(body), &q); err != nil || len(headers) != 2 {
		t.Fatalf("%v: %s, headers %v", err, body, headers)
	}
	vm := testkit.NS(t, "vm") // it sends nothing by itself: its first frame would end the wait
	run(t, vm, "sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1")
	h.ip("link add tap3 type veth peer name eth0 address 02:00:00:00:07:01 netns " + vm.Name)
	run(t, vm, "ip link set eth0 up")
	h.start("--config", h.file("heddle.yaml", "switches: [{name: lab, portGroups: [{name: web}, {name: storage}]}]\n"))
	must := func(call, body string) {
		t.Helper()
		if status, text := h.asked(headers, call, body); status != http.StatusOK {
			t.Fatalf("%s: %d %s", call, status, text)
		}
	}
	const prepare, named = "PortService/ConnectIncomingPort", `{"port": "vm7/eth0"}`
	status, answer := h.asked(headers, prepare, body)
	if status == http.StatusOK || !strings.Contains(answer, "switch lab has no uplink") ||
		!strings.Contains(answer, "needs storage") {
		t.Errorf("the host has no uplink: %d %s", status, answer)
	}
	delete(q, "needs")
	delete(q, "needsUplink")
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(q); err != nil {
		t.Fatal(err)
	}
	for _, last := range []string{"MoveService/CancelMove", "PortService/ActivatePort"} {
		must(prepare, b.String())
		must(prepare, b.String())
		h.awaitPort("vm7/eth0", api.Waiting)
		must("MoveService/ListMoves", named)
		must(last, named)
		if last == "PortService/ActivatePort" {
			must(last, named)
			h.awaitPort("vm7/eth0", api.Up)
			continue
		}
		h.await("the port is gone", func() bool {
			return !strings.Contains(h.must("port", "list"), fmt.Sprint(q["port"].(map[string]any)["name"]))
		})
	}
}
