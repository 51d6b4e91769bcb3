package cni

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"

	"heddle/internal/host/hostdev"
	"heddle/internal/spec"
)

func TestNamesFitAndTellAttachmentsApart(t *testing.T) {
	long := strings.Repeat("f", 64)
	seen := map[string]bool{}
	for _, c := range [][3]string{{"net", long, "eth0"}, {"net", long, "eth1"}, {"net", long[:63] + "e", "eth0"},
		{"net2", long, "eth0"}, {"net", "short", "eth0"}, {long + "1", long, "eth0"}, {long + "2", long, "eth0"},
		{long, long, long[:15]}, {long[:26], long, long[:15]}, {long[:26], long, "eth0"}} {
		d, p := hostDevice(c[0], c[1], c[2]), port(c[0], c[1], c[2])
		if len(d) > hostdev.NameMax {
			t.Errorf("device name %s is too long", d)
		}
		if len(p) > spec.MaxName {
			t.Errorf("port name %s is too long", p)
		}
		if seen[d] || seen[p] {
			t.Errorf("%v: %s or %s is another's", c, d, p)
		}
		seen[d], seen[p] = true, true
		if !strings.HasPrefix(p, portPrefix(c[0])) {
			t.Errorf("port %s is not the network's", p)
		}
	}
}

// Ports that a former version has named are found.
func TestNamesThatFitAreNotShortened(t *testing.T) {
	for _, c := range [][2]string{{"web", "eth0"}, {"storage-replication-net01a", "eth0"},
		{"storage", "secondary-net01"}} {
		if p := port(c[0], "c0ffee", c[1]); !strings.HasPrefix(p, "cni/"+c[0]+"/c0ffee/"+c[1]+"/hc") {
			t.Error(p)
		}
	}
}

// A container's port is known by the pod's UID where the runtime says it, else by the container and its host.
func TestS78_WhoseThePortOfAContainerIs(t *testing.T) {
	of := func(container, args string) (string, string) {
		a, err := parse(&skel.CmdArgs{StdinData: []byte(`{"name": "web"}`), Args: args, ContainerID: container,
			IfName: "eth0"})
		if err != nil {
			t.Fatal(err)
		}
		return a.identity()
	}
	const uid = "34b73eb8-3d2e-457d-a975-3d6c134df506"
	for args, want := range map[string]string{
		"IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=web-0;K8S_POD_UID=" + uid: uid,
		"K8S_POD_UID=" + strings.ToUpper(uid):                                             uid,
		"K8S_POD_NAME=static;K8S_POD_UID=" + strings.ReplaceAll(uid, "-", ""):             uid,
	} {
		if vm, adapter := of("c1", args); vm != want || adapter != "web/eth0" {
			t.Errorf("%s: %s %s, want %s", args, vm, adapter, want)
		}
	}
	seen := map[string]bool{}
	for _, container := range []string{"c1", "c2", strings.Repeat("f", 64)} {
		vm, _ := of(container, "K8S_POD_UID=none")
		if again, _ := of(container, ""); !spec.ValidUUID(vm) || again != vm || seen[vm] {
			t.Errorf("container %s is %s, and then %s", container, vm, again)
		}
		seen[vm] = true
	}
}

func TestWhereTheMACAndThePortGroupComeFrom(t *testing.T) {
	for _, c := range []struct {
		conf, args, mac, group string
		code                   uint
	}{
		{conf: `{"portGroup": "web"}`, group: "web"},
		{conf: `{"portGroup": "web"}`, args: "MAC=02:00:00:00:00:01;HEDDLE_PORT_GROUP=db;OTHER=x",
			mac: "02:00:00:00:00:01", group: "db"},
		{conf: `{"portGroup": "web", "runtimeConfig": {"mac": "02:00:00:00:00:02"}}`, args: "MAC=02:00:00:00:00:01",
			mac: "02:00:00:00:00:02", group: "web"},
		{conf: `{"portGroup": "web", "args": {"cni": {"mac": "02:00:00:00:00:03"}}}`, args: "MAC=02:00:00:00:00:01",
			mac: "02:00:00:00:00:03", group: "web"},
		{conf: `{"portGroup": "web", "args": {"cni": {"mac": "02:00:00:00:00:03"}}, "runtimeConfig": {"mac":` +
			` "02:00:00:00:00:02"}}`, mac: "02:00:00:00:00:02", group: "web"},
		{conf: `{`, code: types.ErrDecodingFailure},
		{conf: `{}`, args: "MAC=rubbish", code: types.ErrInvalidEnvironmentVariables},
		{conf: `{}`, args: "MAC=01:00:00:00:00:01", code: types.ErrInvalidEnvironmentVariables},
	} {
		t.Run(c.conf, func(t *testing.T) {
			a, err := parse(&skel.CmdArgs{StdinData: []byte(c.conf), Args: c.args})
			var e *types.Error
			if c.code != 0 {
				if !errors.As(err, &e) || e.Code != c.code {
					t.Errorf("%s %s: %v, want code %d", c.conf, c.args, err, c.code)
				}
				return
			}
			if err != nil || a.mac.String() != c.mac || a.conf.PortGroup != c.group {
				t.Errorf("%s %s: %v %+v", c.conf, c.args, err, a)
			}
		})
	}
}

func TestAPluginIsLookedForByNameAlone(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "host-local"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "readme"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if path, err := findPlugin("/nowhere:"+dir, "host-local"); err != nil || path != filepath.Join(dir, "host-local") {
		t.Errorf("%s %v", path, err)
	}
	for _, name := range []string{"readme", "missing", "../host-local", "..", ""} {
		if path, err := findPlugin(dir, name); err == nil {
			t.Errorf("%q: %s", name, path)
		}
	}
}
