package spec

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// filled sets each field below v, and gives each list n entries, each with a text of its own.
func filled(v reflect.Value, n int, texts *int) {
	switch v.Kind() {
	case reflect.String:
		*texts++
		shapes := []string{"a%d", "%d", "true: %d", "- %d", "%d\nlines\n", "a long name of many words, as people " +
			"give them to port groups in a large firm: number %d of the ones that it has"}
		v.SetString(fmt.Sprintf(shapes[*texts%len(shapes)], *texts))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(7)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		filled(v.Elem(), n, texts)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			filled(v.Index(i), n, texts)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		filled(key, n, texts)
		filled(value, n, texts)
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				filled(v.Field(i), n, texts)
			}
		}
	}
}

// A definition is written in parts. Whatever it has, its text is that of the whole.
func TestFormatDefinition_InPartsIsTheTextOfTheWhole(t *testing.T) {
	full := &Definition{}
	texts := 0
	filled(reflect.ValueOf(full).Elem(), 2, &texts)
	many := *full
	for _, n := range []int{atOnce - 1, atOnce, atOnce + 1, 2*atOnce + 5} {
		s := full.Switches[0]
		s.PortGroups = nil
		for i := range n {
			s.PortGroups = append(s.PortGroups, full.Switches[1].PortGroups[i%2])
			many.Templates = append(many.Templates, full.Templates[i%2])
			many.Hosts = append(many.Hosts, full.Hosts[i%2])
			many.Ports = append(many.Ports, full.Ports[i%2])
		}
		many.Switches = append(many.Switches, s)
	}
	for name, d := range map[string]*Definition{
		"nothing": {}, "no switches": {Switches: []Switch{}}, "every field": full, "many": &many,
		"no port groups": {Switches: []Switch{{Name: "a"}, {Name: "b"}}}, "hosts": {Hosts: full.Hosts},
		"ports": {Ports: full.Ports, Templates: full.Templates},
	} {
		want, err := yaml.Dump(d)
		got, errParts := FormatDefinition(d)
		if err != nil || errParts != nil {
			t.Fatal(name, err, errParts)
		}
		if string(got) == string(want) {
			continue
		}
		wants, lines := strings.Split(string(want), "\n"), strings.Split(string(got), "\n")
		for i := range min(len(wants), len(lines)) {
			if wants[i] != lines[i] {
				t.Fatalf("%s, line %d: %q, want %q", name, i+1, lines[i], wants[i])
			}
		}
		t.Fatalf("%s: %d lines, want %d", name, len(lines), len(wants))
	}
}
