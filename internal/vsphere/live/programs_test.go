package live

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"heddle/internal/vsphere"
)

// programs builds heddle and heddle-vsphere in one directory, as packages install them.
func programs(t *testing.T) (heddle string) {
	t.Helper()
	dir := t.TempDir()
	c := exec.Command("go", "build", "-o", dir+string(filepath.Separator), "heddle/cmd/heddle",
		"heddle/cmd/heddle-vsphere")
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return filepath.Join(dir, "heddle")
}

// The programs as they are installed read a vCenter together: what heddle prints is what it prints of a dump of the
// same inventory. A wrong certificate and a wrong password are refused, and no output has the password.
func TestThePrograms_ReadAVCenterTogether(t *testing.T) {
	_, o := stand(t, readLab(t))
	heddle, dir := programs(t), t.TempDir()
	secret := filepath.Join(dir, "password")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(secret, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	imports := func(args ...string) (out, errs string, err error) {
		c := exec.CommandContext(t.Context(), heddle, append([]string{"import", "vsphere", "--host-ports"}, args...)...)
		var o, e bytes.Buffer
		c.Stdout, c.Stderr = &o, &e
		err = c.Run()
		return o.String(), e.String(), err
	}
	live := []string{"--vcenter", o.URL, "--user", user, "--password-file", secret, "--thumbprint", o.Thumbprint}
	write(password)
	for _, format := range []string{"table", "yaml"} {
		want, _, err := imports(labDump, "-o", format)
		if err != nil {
			t.Fatal(err)
		}
		got, errs, err := imports(append(live, "-o", format)...)
		if err != nil || got != want || !strings.Contains(got, "lab") && format == "yaml" {
			t.Errorf("%s: %v: live it prints\n%s%s\nof the dump\n%s", format, err, got, errs, want)
		}
	}
	write("another")
	if out, errs, err := imports(live...); err == nil || !strings.Contains(errs, "password") {
		t.Errorf("a wrong password: %v: %s%s", err, out, errs)
	}
	write(password)
	live[len(live)-1] = strings.Repeat("00:", 31) + "00"
	out, errs, err := imports(live...)
	if err == nil || !strings.Contains(errs, "certificate") || strings.Contains(out+errs, password) {
		t.Errorf("a certificate of somebody else: %v: %s%s", err, out, errs)
	}
}

// firstGroup is the number of the first port group: no switch has one of these for its uplinks.
const firstGroup = 1_000_000

// largeLab is an inventory of so many switches with so many port groups each.
func largeLab(b testing.TB, switches, groups int) *lab {
	l := readLab(b)
	l.groups = nil
	for s := range switches {
		sw := &l.sw
		if s > 0 {
			config := *l.sw.Config.(*types.VMwareDVSConfigInfo)
			sw = &simulatedSwitch{}
			sw.Config = &config
			l.more = append(l.more, sw)
		}
		sw.Self.Type, sw.Self.Value = "VmwareDistributedVirtualSwitch", fmt.Sprintf("dvs-%d", s)
		sw.Name = fmt.Sprintf("dvs%d", s)
		sw.Config.GetDVSConfigInfo().Name = sw.Name
		for n := range groups {
			g := &mo.DistributedVirtualPortgroup{}
			g.Self = types.ManagedObjectReference{Type: "DistributedVirtualPortgroup",
				Value: fmt.Sprintf("dvportgroup-%d", firstGroup+s*groups+n)}
			g.Name = fmt.Sprintf("pg%d-%d", s, n)
			g.Config = types.DVPortgroupConfigInfo{Key: g.Self.Value, Name: g.Name, Type: "ephemeral",
				DistributedVirtualSwitch: &sw.Self, DefaultPortConfig: &types.VMwareDVSPortSetting{
					Vlan: &types.VmwareDistributedVirtualSwitchVlanIdSpec{VlanId: int32(1 + n%4094)}}}
			l.groups = append(l.groups, g)
		}
	}
	return l
}

// One operation reads 100 switches with 1,000 port groups each from a simulated vCenter in the same process, whose time
// counts as well, and translates them.
func BenchmarkReadOf100SwitchesWith1000PortGroups(b *testing.B) {
	_, o := stand(b, largeLab(b, 100, 1000))
	o.Timeout = 10 * time.Minute
	for b.Loop() {
		var dump bytes.Buffer
		if err := Dump(b.Context(), o, &dump); err != nil {
			b.Fatal(err)
		}
		read := time.Now()
		inv := &vsphere.Inventory{}
		if err := inv.Read("live", &dump); err != nil {
			b.Fatal(err)
		}
		r, err := inv.Translate(vsphere.Options{})
		if err != nil || r.PortGroups != 100_000 || r.Switches != 100 {
			b.Fatal(r.Switches, r.PortGroups, err)
		}
		b.ReportMetric(time.Since(read).Seconds(), "s/translation")
	}
}
