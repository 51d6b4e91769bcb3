package export

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
	local := standard.templates()[:len(standard.templates())/3]
	for _, all := range [][]*ipfix.Template{local, options, like.templates()} {
		if want := layoutsOf(all); !strings.Contains(string(page), want) {
			t.Errorf("docs/reference/ipfix.md lacks this table:\n%s", want)
		}
	}
	for hop, field := range map[int]string{1: "ipNextHopIPv4Address (15):4", 2: "ipNextHopIPv6Address (62):16"} {
		first, last := int(local[0].ID())+hop*hopOffset, int(local[len(local)-1].ID())+hop*hopOffset
		if want := fmt.Sprintf("%d–%d: with `%s` after `ethernetType`", first, last, field); !strings.Contains(
			string(page), want) {
			t.Errorf("docs/reference/ipfix.md lacks: %s", want)
		}
	}
}

// Records of frames that leave for another host by a tunnel are the others, with the next hop.
func TestTemplatesWithANextHopAreTheOthersWithOneFieldMore(t *testing.T) {
	s, err := newStandard()
	if err != nil {
		t.Fatal(err)
	}
	names := func(tpl *ipfix.Template) (all []string) {
		for i := range tpl.Len() {
			all = append(all, fmt.Sprint(tpl.Field(i)))
		}
		return all
	}
	all := s.templates()
	n := len(all) / 3
	for i, tpl := range all[:n] {
		for hop, name := range []string{"ipNextHopIPv4Address", "ipNextHopIPv6Address"} {
			field, err := ipfix.Fields(name)
			if err != nil {
				t.Fatal(err)
			}
			want := slices.Insert(names(tpl), len(standardPoint), fmt.Sprint(field[0]))
			got := all[(hop+1)*n+i]
			if diff := cmp.Diff(want, names(got)); diff != "" || int(got.ID()) != int(tpl.ID())+(hop+1)*hopOffset {
				t.Errorf("template %d beside %d: (-want +got)\n%s", got.ID(), tpl.ID(), diff)
			}
		}
	}
}
