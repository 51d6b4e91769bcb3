package spec

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// TestThePageOfTheDefinitionHasEveryField: each type of a definition has its rows in the page's table, one for each of
// its fields and no other.
func TestThePageOfTheDefinitionHasEveryField(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/definition.md")
	if err != nil {
		t.Fatal(err)
	}
	rows, where := map[string][]string{}, ""
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, " | ")
		if len(cells) != 4 || !strings.HasPrefix(cells[1], "`") {
			continue
		}
		if at := strings.TrimSpace(strings.TrimPrefix(cells[0], "|")); at != "" {
			where = at
		}
		rows[where] = append(rows[where], strings.Trim(cells[1], "`"))
	}
	d := newDecoder("")
	for where, rt := range map[string]reflect.Type{
		"definition":                      reflect.TypeFor[Definition](),
		"template":                        reflect.TypeFor[HostTemplate](),
		"host":                            reflect.TypeFor[HostEntry](),
		"switch of a template or host":    reflect.TypeFor[HostSwitch](),
		"uplink of a template or host":    reflect.TypeFor[HostUplink](),
		"host port of a template or host": reflect.TypeFor[HostPort](),
		"settings of one static port":     reflect.TypeFor[PortSettings](),
	} {
		t.Run(where, func(t *testing.T) {
			if want := d.fieldsOf(rt).names; !reflect.DeepEqual(rows[where], want) {
				t.Errorf("the page has the fields %q, a definition %q", rows[where], want)
			}
		})
	}
	if len(rows) != 7 {
		t.Errorf("the page has rows for %d types", len(rows))
	}
}
