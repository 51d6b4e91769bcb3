package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"heddle/internal/slice"
	"heddle/internal/spec"
)

const fleet = `switches:
  - name: dvs
    uplinks: [{name: uplink1}]
    portGroups:
      - {name: web, vlan: {access: 10}}
      - {name: db, vlan: {access: 20}, binding: static, ports: {number: 4}, overrides: {security: true}}
  - name: storage
    uplinks: [{name: uplink1}]
    portGroups:
      - {name: iscsi, vlan: {access: 30}}
templates:
  - name: racks
    labels: {rack: a}
    switches:
      - {name: dvs, uplinks: [{name: uplink1, device: eno1}]}
      - {name: storage, uplinks: [{name: uplink1, device: eno2}]}
hosts:
  - name: esx9
    switches: [{name: dvs, uplinks: [{name: uplink1, device: eno9}]}]
    hostPorts: [{name: vmk1, switch: dvs, portGroup: web, addresses: ["192.0.2.9/24"]}]
ports:
  - {id: "33", switch: dvs, portGroup: db, name: main, security: {promiscuous: accept}}
`

func sample(t *testing.T) *File {
	t.Helper()
	d, err := spec.ParseDefinition("fleet.yaml", []byte(fleet))
	if err != nil {
		t.Fatal(err)
	}
	return &File{Made: time.Date(2026, 11, 24, 5, 0, 0, 0, time.UTC), Version: "1", Cluster: "c", Epoch: 1,
		Revision: 42,
		Identifiers: map[slice.Kind]map[string]string{slice.Switch: {"dvs": "a1", "storage": "a2"},
			slice.PortGroup: {"dvs/db": "a3"}},
		Hosts:     []Host{{Name: "esx1", ID: "h1", Labels: map[string]string{"rack": "a"}}},
		Addresses: map[string][]Address{"esx1": {{Port: "vmk2", Switch: "dvs", Address: "198.51.100.7"}}},
		StaticPorts: []PortGroup{{Group: "dvs/db", Free: []string{"32", "34"}, Bound: []Port{{ID: "33", VM: "vm-1",
			Adapter: "eth0", MAC: "02:00:00:00:00:01", Host: "esx1", HostID: "h1"}}}},
		Definition: d}
}

func encoded(t *testing.T, f *File) []byte {
	t.Helper()
	text, err := Encode(f)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// again gives a text that was changed the checksum that fits.
func again(text string) []byte {
	head, body, _ := strings.Cut(text, "# of all that follows this line\n")
	sum := sha256.Sum256([]byte(body))
	at := strings.Index(head, checksumField) + len(checksumField)
	return []byte(head[:at] + hex.EncodeToString(sum[:]) + "  # of all that follows this line\n" + body)
}

func TestS82_AFileIsReadAsItWasWritten(t *testing.T) {
	f := sample(t)
	text := encoded(t, f)
	got, err := Decode("b.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(encoded(t, got), text) {
		t.Errorf("written again it is another file:\n%s\n%s", text, encoded(t, got))
	}
	got.Definition = f.Definition
	if !reflect.DeepEqual(got, f) {
		t.Errorf("read: %+v\nwritten: %+v", got, f)
	}
	_, second, _ := bytes.Cut(text, []byte("\n---\n"))
	if _, err := spec.ParseDefinition("second", second); err != nil {
		t.Errorf("the second document is no definition: %v", err)
	}
}

func TestDecode_RefusesWhatIsNotWhole(t *testing.T) {
	text := encoded(t, sample(t))
	for n := range text { // cut off anywhere
		if f, err := Decode("b.yaml", text[:n]); err == nil {
			t.Fatalf("the first %d of %d bytes are read: %+v", n, len(text), f)
		}
	}
	body := bytes.Index(text, []byte("made:"))
	for n := body; n < len(text); n += 7 { // one bit in another way
		damaged := bytes.Clone(text)
		damaged[n] ^= 1
		if _, err := Decode("b.yaml", damaged); err == nil {
			t.Fatalf("byte %d is another, and nobody notices", n)
		}
	}
}

func TestDecode_RefusesInWords(t *testing.T) {
	text := string(encoded(t, sample(t)))
	bolt := make([]byte, 4096)
	copy(bolt[16:], []byte{0xed, 0xda, 0x0c, 0xed})
	for _, c := range []struct{ name, text, says string }{
		{"empty", "", "this is no backup"},
		{"a definition", fleet, "this is no backup"},
		{"a snapshot", string(bolt), "a snapshot of the controllers' database"},
		{"a newer version", strings.Replace(text, "heddleBackup: 1", "heddleBackup: 2", 1),
			"of a newer version of Heddle"},
		{"changed by hand", strings.Replace(text, "access: 10", "access: 11", 1), "its checksum does not fit"},
		{"an unknown field", string(again(strings.Replace(text, "cluster: c", "cluster: c\nfuture: 1", 1))), "future"},
		{"a port of no group", string(again(strings.Replace(text, "- portGroup: dvs/db", "- portGroup: dvs/no", 1))),
			"no port group \"dvs/no\" with static ports"},
		{"a port twice", string(again(strings.Replace(text, "free: ['32', '34']", "free: ['32', '33']", 1))),
			"port 33 is in"},
		{"a number that is none", string(again(strings.Replace(text, "free: ['32', '34']", "free: ['032']", 1))),
			"is no number of a static port"},
		{"an identifier twice", string(again(strings.Replace(text, "storage: a2", "storage: a1", 1))),
			"another object has"},
		{"a hostile identifier", string(again(strings.Replace(text, "storage: a2", `storage: "../x\n"`, 1))),
			"is none"},
		{"an address that is none", string(again(strings.Replace(text, "198.51.100.7", "198.51.100.777", 1))),
			"is none"},
		{"a bomb", string(again(strings.Replace(text, "cluster: c", "cluster: c\nx: "+strings.Repeat("[", 20000), 1))),
			"the first document"},
		{"a fault of the definition", string(again(strings.Replace(text, "access: 20", "access: 5000", 1))), "1–4094"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := Decode("b.yaml", []byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.says) || f != nil {
				t.Errorf("%v; want %q", err, c.says)
			}
			if err != nil && len(err.Error()) > 4000 {
				t.Errorf("the message has %d bytes", len(err.Error()))
			}
		})
	}
}

func names(d *spec.Definition) string {
	var list []string
	for _, s := range d.Switches {
		list = append(list, fmt.Sprintf("%s(%d)", s.Name, len(s.PortGroups)))
	}
	for _, x := range d.Templates {
		list = append(list, fmt.Sprintf("%s(%d)", x.Name, len(x.Switches)))
	}
	for _, h := range d.Hosts {
		list = append(list, fmt.Sprintf("%s(%d,%d)", h.Name, len(h.Switches), len(h.HostPorts)))
	}
	return strings.Join(list, " ")
}

func TestS82_OntoWhatThereIs(t *testing.T) {
	all := sample(t)
	one := func() *File {
		f := sample(t)
		f.Switch, f.Definition = "dvs", Of(f.Definition, "dvs")
		f.Identifiers = map[slice.Kind]map[string]string{slice.Switch: {"dvs": "a1"}}
		return f
	}
	changed := func() *spec.Definition {
		d := sample(t).Definition
		d.Switches[0].MTU = 9000
		return d
	}
	for _, c := range []struct {
		name       string
		file       *File
		now        *spec.Definition
		how        How
		want       string
		collisions []string
	}{
		{"all on nothing", all, &spec.Definition{}, How{Keep: true}, "dvs(2) storage(1) racks(2) esx9(1,1)", nil},
		{"all on the same", all, sample(t).Definition, How{Keep: true}, "dvs(2) storage(1) racks(2) esx9(1,1)", nil},
		{"a switch where another is", one(), Without(sample(t).Definition, "dvs"), How{Keep: true},
			"storage(1) dvs(2) racks(2) esx9(1,1)", nil},
		{"a switch that is another", one(), changed(), How{}, "",
			[]string{"switch dvs is there, and is another"}},
		{"in place", one(), changed(), How{Replace: true}, "storage(1) dvs(2) racks(2) esx9(1,1)", nil},
		{"all in place of more", all, &spec.Definition{Switches: []spec.Switch{{Name: "other"}}}, How{Replace: true},
			"dvs(2) storage(1) racks(2) esx9(1,1)", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			next, collisions := c.file.Onto(c.now, c.how)
			if !slices.Equal(collisions, c.collisions) {
				t.Fatalf("collisions %q, want %q", collisions, c.collisions)
			}
			if len(collisions) == 0 && names(next) != c.want {
				t.Errorf("%s, want %s", names(next), c.want)
			}
			if len(collisions) == 0 {
				if err := next.Validate(); err != nil {
					t.Error(err)
				}
				if n := len(next.Ports); (n > 0) != c.how.Keep {
					t.Errorf("settings of %d ports come with %+v", n, c.how)
				}
			}
		})
	}
}

func TestRename_NamesTheSwitchEverywhere(t *testing.T) {
	f := sample(t)
	if err := f.Rename("x"); err == nil {
		t.Error("a backup of everything takes another name")
	}
	f.Switch, f.Definition = "dvs", Of(f.Definition, "dvs")
	if err := f.Rename("a/b\x00"); err == nil {
		t.Error("a name that is none is taken")
	}
	if err := f.Rename("copy"); err != nil {
		t.Fatal(err)
	}
	f.Identifiers = map[slice.Kind]map[string]string{slice.Switch: {"copy": "a1"}}
	text := encoded(t, f)
	if strings.Contains(string(text), "dvs") {
		t.Errorf("the old name is still there:\n%s", text)
	}
	if _, err := Decode("b.yaml", text); err != nil {
		t.Error(err)
	}
}

func TestPortChanges(t *testing.T) {
	was, now := sample(t), sample(t)
	now.StaticPorts = []PortGroup{{Group: "dvs/db", Free: []string{"33", "35"}, Bound: []Port{{ID: "32", VM: "vm-2",
		Adapter: "eth0"}}}}
	var got []string
	for _, c := range PortChanges(was, now) {
		got = append(got, c.Port+" "+c.Change)
	}
	want := []string{"32 bound", "33 released", "34 removed", "35 added"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func FuzzDecode(f *testing.F) {
	d, err := spec.ParseDefinition("fleet.yaml", []byte(fleet))
	if err != nil {
		f.Fatal(err)
	}
	text, err := Encode(&File{Cluster: "c", Definition: d})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := Decode("b.yaml", data)
		if err == nil {
			if _, err := Encode(got); err != nil {
				t.Error(err)
			}
		}
	})
}
