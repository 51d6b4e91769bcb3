package vsphere

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/vmware/govmomi/vim25/types"
)

// Each property of the API's objects is read, or stands in testdata/unread.txt with the reason why it need not be:
// what is not read can't be noted, and would be dropped silently.
func TestImport_EachPropertyIsReadOrNeedNotBe(t *testing.T) {
	var have []string
	for _, c := range []struct {
		ours, api reflect.Type
		of        string
	}{
		{reflect.TypeFor[config](), reflect.TypeFor[types.VMwareDVSConfigInfo](), "switch"},
		{reflect.TypeFor[config](), reflect.TypeFor[types.DVPortgroupConfigInfo](), "port group"},
		{reflect.TypeFor[setting](), reflect.TypeFor[types.VMwareDVSPortSetting](), "port setting"},
		{reflect.TypeFor[groupPolicy](), reflect.TypeFor[types.VMwareDVSPortgroupPolicy](), "group policy"},
		{reflect.TypeFor[member](), reflect.TypeFor[types.DistributedVirtualSwitchHostMember](), "member"},
		{reflect.TypeFor[vnic](), reflect.TypeFor[types.HostVirtualNic](), "vnic"},
	} {
		have = append(have, unreadOf(c.of, c.ours, c.api)...)
	}
	text, err := os.ReadFile("testdata/unread.txt")
	if err != nil {
		t.Fatal(err)
	}
	known := slices.DeleteFunc(strings.Split(string(text), "\n"), func(line string) bool {
		return line == "" || strings.HasPrefix(line, "#")
	})
	for _, p := range have {
		if !slices.Contains(known, p) {
			t.Errorf("%s is not read: read it, or note it, or say in testdata/unread.txt why it need not be", p)
		}
	}
	for _, p := range known {
		if !slices.Contains(have, p) {
			t.Errorf("%s is read, or is none of the API's: take it out of testdata/unread.txt", p)
		}
	}
}

// unreadOf are the paths of properties of an API's type for which a type of ours has no field.
func unreadOf(at string, ours, api reflect.Type) (paths []string) {
	ours, api = element(ours), element(api)
	if api.Kind() != reflect.Struct || ours.Kind() != reflect.Struct {
		return nil
	}
	for _, f := range reflect.VisibleFields(api) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || name == "" || name == "-" {
			continue
		}
		field, ok := fieldOf(ours, name)
		if !ok {
			paths = append(paths, at+"."+name)
			continue
		}
		paths = append(paths, unreadOf(at+"."+name, field, f.Type)...)
	}
	return paths
}

func fieldOf(t reflect.Type, name string) (reflect.Type, bool) {
	for _, f := range reflect.VisibleFields(t) {
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag == name {
			return f.Type, true
		}
	}
	return nil, false
}

func element(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return t
}
