package export

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"heddle/internal/flow/ipfix"
)

// layoutsOf are the tables of templates on a page: each field with its number and length.
func layoutsOf(templates []*ipfix.Template) string {
	var s strings.Builder
	for _, t := range templates {
		length := fmt.Sprint(t.RecordLength(), " bytes")
		if t.Variable() {
			length += " or more"
		}
		fmt.Fprintf(&s, "| %d | %s |", t.ID(), length)
		for i := range t.Len() {
			f := t.Field(i)
			number := fmt.Sprint(f.ID)
			if f.PEN != ipfix.IANA {
				number = fmt.Sprintf("%d/%d", f.PEN, f.ID)
			}
			size := fmt.Sprint(f.Length)
			if f.Length == ipfix.Variable {
				size = "v"
			}
			name := f.Element().Name
			if i < t.Scope() {
				name = "**" + name + "**"
			}
			fmt.Fprintf(&s, " %s (%s):%s", name, number, size)
		}
		s.WriteString(" |\n")
	}
	return s.String()
}

// The page has every template that is sent, with every element and its length.
func TestPageShowsEveryTemplate(t *testing.T) {
	page, err := os.ReadFile("../../../docs/reference/ipfix.md")
	if err != nil {
		t.Fatal(err)
	}
	standard, err := newStandard()
	if err != nil {
		t.Fatal(err)
	}
	like, err := newVDS()
	if err != nil {
		t.Fatal(err)
	}
	options, err := optionsTemplates()
	if err != nil {
		t.Fatal(err)
	}
	for _, all := range [][]*ipfix.Template{standard.templates(), options, like.templates()} {
		if want := layoutsOf(all); !strings.Contains(string(page), want) {
			t.Errorf("docs/reference/ipfix.md lacks this table:\n%s", want)
		}
	}
}
