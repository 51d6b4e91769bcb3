package libvirt

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heddle/internal/spec"
)

// runningUUID is the UUID of what running makes.
const runningUUID = "34b73eb8-3d2e-457d-a975-3d6c134df506"

// running is the XML of a started domain, as libvirt 9.0 hands it to a hook, with that inside Heddle's metadata.
func running(name, wants string) string {
	return fmt.Sprintf(`<domain type='kvm' id='1'>
  <name>%s</name>
  <uuid>`+runningUUID+`</uuid>
  <metadata>
    <other:thing xmlns:other="urn:other"><other:port portGroup="no"/></other:thing>
    %s
  </metadata>
  <devices>
    <interface type='ethernet'><mac address='52:54:00:00:00:0A'/><target dev='vnet0'/><model type='virtio'/><alias name='net0'/></interface>
    <interface type='ethernet'><mac address='52:54:00:00:00:02'/><target dev='vm1-eth1' managed='yes'/><alias name='net1'/></interface>
    <interface type='bridge'><mac address='52:54:00:00:00:03'/><source bridge='br0'/><target dev='vnet2'/><alias name='net2'/></interface>
  </devices>
</domain>`, name, wants)
}

func ports(items string) string {
	return `<heddle:ports xmlns:heddle="` + Namespace + `">` + items + `</heddle:ports>`
}

func TestPortsOfADomain(t *testing.T) {
	first := spec.Port{Name: "vm1/net0", PortGroup: "web", Device: "vnet0", MAC: "52:54:00:00:00:0a",
		Owner: "libvirt/vm1", Domain: runningUUID}
	second := spec.Port{Name: "vm1/net1", PortGroup: "web", Device: "vm1-eth1", MAC: "52:54:00:00:00:02",
		Owner: "libvirt/vm1", Domain: runningUUID}
	db := second
	db.PortGroup, db.Switch, db.Monitor = "db", "lab", spec.Monitor{Socket: "/run/q", NIC: "net1"}
	for _, c := range []struct {
		wants string
		want  []spec.Port
	}{
		{"", nil},
		{ports(""), nil},
		{ports(`<heddle:port portGroup="web"/>`), []spec.Port{first, second}},
		{
			ports(
				`<heddle:port portGroup="web"/><heddle:port portGroup="db" switch="lab" monitor="/run/q" mac="52:54:00:00:00:02"/>`), []spec.Port{first, db}},
		{ports(`<heddle:port portGroup="web" dev="vm1-eth1"/>`), []spec.Port{second}},
		{ports(`<heddle:port portGroup="web" alias="net0"/>`), []spec.Port{first}},
		{ports(`<heddle:port portGroup="web" mac="52-54-00-00-00-0A"/>`), []spec.Port{first}},
		{`<ports xmlns="` + Namespace + `"><port portGroup="web"/></ports>`, []spec.Port{first, second}},
	} {
		d, err := Parse(strings.NewReader(running("vm1", c.wants)))
		if err != nil {
			t.Errorf("%s: %v", c.wants, err)
			continue
		}
		got, err := d.Ports()
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" || d.Ours() != (len(c.want) > 0) {
			t.Errorf("%s: %v, ours %v\n%s", c.wants, err, d.Ours(), diff)
		}
	}
}

// onNetwork is the XML of a started domain whose adapters are on these networks of libvirt's, as libvirt 9.0 hands it
// to a hook.
func onNetwork(wants string, sources ...string) string {
	adapters := ""
	for i, source := range sources {
		adapters += fmt.Sprintf("<interface type='%[3]s'><mac address='52:54:00:00:00:1%[1]d'/><source %[2]s "+
			"portid='x' bridge='br0'/><target dev='vnet%[1]d'/><alias name='net%[1]d'/></interface>", i, source,
			[]string{"bridge", "network"}[i%2])
	}
	return "<domain id='1'><name>vm1</name><metadata>" + wants + "</metadata><devices>" + adapters +
		"</devices></domain>"
}

func TestAPortgroupOfANetworkNamesThePortGroup(t *testing.T) {
	port := func(n int, sw, group string) spec.Port {
		return spec.Port{Name: fmt.Sprintf("vm1/net%d", n), Switch: sw, PortGroup: group, Owner: "libvirt/vm1",
			Device: fmt.Sprintf("vnet%d", n), MAC: fmt.Sprintf("52:54:00:00:00:1%d", n)}
	}
	seen := port(0, "", "db")
	seen.Monitor = spec.Monitor{Socket: "/run/q", NIC: "net0"}
	for _, c := range []struct {
		xml   string
		want  []spec.Port
		fault string
	}{
		{onNetwork("", "network='heddle-lab' portgroup='web'", "network='default' portgroup='web'",
			"network='heddle' portgroup='db'"), []spec.Port{port(0, "lab", "web"), port(2, "", "db")}, ""},
		{onNetwork("", "network='default'", "network='heddles' portgroup='web'"), nil, ""},
		{onNetwork(ports(`<heddle:port portGroup="db" monitor="/run/q" alias="net0"/>`), "network='heddle-lab' "+
			"portgroup='web'"), []spec.Port{seen}, ""},
		{onNetwork("", "network='heddle-lab'"), nil, "the adapter 52:54:00:00:00:10 is on network heddle-lab without " +
			"portgroup="},
		{onNetwork(ports(`<heddle:port portGroup="web"/>`), "network='heddle-lab' portgroup='web'"), nil,
			"there is no <interface type='ethernet'>"},
		{onNetwork(ports(`<heddle:port portGroup="web" alias="net0"/>`), "network='default'"), nil,
			"is an <interface type='bridge'>"},
	} {
		d, err := Parse(strings.NewReader(c.xml))
		if err != nil {
			t.Fatalf("%s: %v", c.xml, err)
		}
		got, err := d.Ports()
		if c.fault != "" {
			if err == nil || !strings.Contains(err.Error(), c.fault) {
				t.Errorf("%s: %v; want %q", c.xml, err, c.fault)
			}
			continue
		}
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" || d.Ours() != (c.want != nil) {
			t.Errorf("%s: %v, ours %v\n%s", c.xml, err, d.Ours(), diff)
		}
	}
}

func TestWrongMetadataIsNamed(t *testing.T) {
	for wants, want := range map[string]string{
		ports(`<heddle:port/>`): "without portGroup",
		ports(`<heddle:port portgroup="web"/>`): "attribute portgroup of " +
			"<heddle:port>: the attributes are portGroup,",
		ports(
			`<heddle:prot portGroup="web"/>`): "<prot> in Heddle's metadata",
		ports(`<heddle:port portGroup="web"/><heddle:needs/>`): "a <heddle:needs> without name",
		ports(`<heddle:port portGroup="web"/><heddle:needs of="x"/>`): "attribute of of <heddle:needs>: the attributes are " +
			"name",
		strings.Replace(ports(`<heddle:port portGroup="web"/>`), "ports ", "ports force='si' ", 1): "give yes or no",
		ports(`<port xmlns="" portGroup="web"/>`): "only <port> of the " +
			"namespace",
		ports(`<heddle:port portGroup="web"/><heddle:port portGroup="db"/>`): "two <heddle:port> for " +
			"all adapters",
		ports(`<heddle:port portGroup="a" dev="x"/><heddle:port portGroup="b" dev="x"/>`): "two <heddle:port dev='x'>",
		ports(`<heddle:port portGroup="a" dev="x" alias="net0"/>`): "by one of mac, dev and " +
			"alias",
		ports(`<heddle:port portGroup="a" mac="52:54:00:00:00:99"/>`): "no <interface> of the domain has " +
			"mac='52:54:00:00:00:99'",
		ports(`<heddle:port portGroup="a" mac="52:54:00:00:00:03"/>`): "is an <interface type='bridge'>",
		ports(`<heddle:port portGroup="a" dev="vnet7"/>`):             "no <interface> of the domain has dev='vnet7'",
	} {
		d, err := Parse(strings.NewReader(running("vm1", wants)))
		if err == nil {
			_, err = d.Ports()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", wants, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                                     "virsh dumpxml",
		"<network><name>x</name></network>":    "not the XML of a domain",
		"<domain><name>x</name>":               "read the domain's XML",
		strings.Repeat("<domain>", maxXML/8+1): "more than 8388608 bytes",
	} {
		if _, err := Parse(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.30q: %v", text, err)
		}
	}
	none := `<domain><name>x</name><metadata>` + ports(`<heddle:port portGroup="web"/>`) + `</metadata></domain>`
	d, err := Parse(strings.NewReader(none))
	if err == nil {
		err = d.Check()
	}
	if err == nil || !strings.Contains(err.Error(), "there is no <interface type='ethernet'>") {
		t.Errorf("no adapter: %v", err)
	}
	stopped := strings.NewReplacer("<target dev='vnet0'/>", "", "<alias name='net0'/>",
		"").Replace(running("vm1", ports(`<heddle:port portGroup="web"/>`)))
	d, err = Parse(strings.NewReader(stopped))
	if err != nil || d.Check() != nil {
		t.Fatalf("a domain that is not started: %v", err)
	}
	if _, err := d.Ports(); err == nil || !strings.Contains(err.Error(), "running domain") {
		t.Errorf("its ports: %v", err)
	}
}

func TestADomainsPortsAreNobodyElses(t *testing.T) {
	for name, want := range map[string]string{
		"vm1":                   "vm1/net0",
		"web 1":                 "web 1/net0",
		"Büro":                  "Büro/net0",
		"vm(1)":                 runningUUID + "/net0",
		"-x":                    runningUUID + "/net0",
		strings.Repeat("a", 41): runningUUID + "/net0",
	} {
		d, err := Parse(strings.NewReader(running(name, ports(`<heddle:port portGroup="web" alias="net0"/>`))))
		if err != nil {
			t.Fatal(err)
		}
		got, err := d.Ports()
		if err != nil || got[0].Name != want || !spec.ValidName(got[0].Name) || !d.Owns(want) || d.Owns("vm/net0") ||
			d.Owns("vm11/net0") {
			t.Errorf("%s: %v %v", name, got, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(running("vm1", ports(`<heddle:port portGroup="web" mac="52:54:00:00:00:02"/>`)))
	f.Add(onNetwork("", "network='heddle-lab' portgroup='web'"))
	f.Fuzz(func(t *testing.T, text string) {
		d, err := Parse(strings.NewReader(text))
		if err != nil {
			return
		}
		got, err := d.Ports()
		for _, p := range got {
			if err != nil || !d.Owns(p.Name) || p.PortGroup == "" || p.Device == "" {
				t.Errorf("%+v %v", p, err)
			}
		}
	})
}

// A domain's adapter is known by the domain's UUID and a name of its own, whatever the domain and its port are called.
func TestConnectsSayWhoseThePortsAre(t *testing.T) {
	for name, c := range map[string]struct{ from, to, adapter, port string }{
		"by its MAC":      {"", "", "52:54:00:00:00:0a", ""},
		"by its alias":    {"alias name='net0'", "alias name='ua-front'", "ua-front", ""},
		"with its port":   {`portGroup="web"/>`, `portGroup="web" portId="33"/>`, "52:54:00:00:00:0a", "33"},
		"in another name": {"<name>vm1<", "<name>vm9<", "52:54:00:00:00:0a", ""},
	} {
		t.Run(name, func(t *testing.T) {
			text := running("vm1", ports(`<heddle:port portGroup="web"/>`))
			d, err := Parse(strings.NewReader(strings.Replace(text, c.from, c.to, 1)))
			if err != nil {
				t.Fatal(err)
			}
			list, err := d.Connects()
			if err != nil || len(list) != 2 {
				t.Fatal(list, err)
			}
			if q := list[0]; q.VM != runningUUID || q.Adapter != c.adapter || q.PortID != c.port {
				t.Errorf("adapter %q of VM %q, port %q", q.Adapter, q.VM, q.PortID)
			}
			if list[1].Adapter == list[0].Adapter {
				t.Error("two adapters have one name")
			}
		})
	}
}
