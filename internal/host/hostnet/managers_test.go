package hostnet

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestS81_ServicesThatManageADeviceAreFound(t *testing.T) {
	for _, c := range []struct{ file, content, want string }{
		{"systemd/netif/links/7", "ADMIN_STATE=configured\n", "systemd-networkd"},
		{"systemd/netif/links/7", "ADMIN_STATE=unmanaged\n", ""},
		{"systemd/netif/links/8", "ADMIN_STATE=configured\n", ""},
		{"NetworkManager/devices/7", "[device]\nmanaged=true\n", "NetworkManager"},
		{"NetworkManager/devices/7", "[device]\nmanaged=false\n", ""},
		{"network/ifstate.eth0", "eth0\n", "ifupdown"},
		{"network/ifstate.eth0", "", ""},
		{"network/ifstate.eth1", "eth1\n", ""},
		{"network/ifstate.enp0s2", "enp0s2\n", "ifupdown has brought enp0s2 up"},
	} {
		t.Run(c.file, func(t *testing.T) {
			run := t.TempDir()
			path := filepath.Join(run, c.file)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(c.content), 0o644); err != nil {
				t.Fatal(err)
			}
			got := services(run, []string{"eth0", "enp0s2"}, 7)
			if c.want == "" && len(got) != 0 || c.want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], c.want)) {
				t.Errorf("%s %q: %v", c.file, c.content, got)
			}
		})
	}
}

// A program called like a DHCP client, with the device on its command line.
func TestS81_ADHCPClientOfTheDeviceIsFound(t *testing.T) {
	device := fmt.Sprint("hd", os.Getpid())
	cmd := &exec.Cmd{Path: "/bin/sh", Args: []string{"dhclient", "-c", "echo runs; read line", "-", device}}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		in.Close()
		_ = cmd.Wait() // read has found the end of its input
	}()
	if _, err := out.Read(make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	if got := clients([]string{"x", device}); len(got) != 1 || !strings.HasPrefix(got[0], "dhclient runs for "+device) {
		t.Errorf("%q", got)
	}
	if got := clients([]string{device + "x"}); len(got) != 0 {
		t.Errorf("of another device: %q", got)
	}
}
