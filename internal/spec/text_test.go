package spec

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf16"

	"go.yaml.in/yaml/v4"
)

// encoded is a text in UTF-16 behind its mark.
func encoded(order binary.AppendByteOrder, text string) []byte {
	b := order.AppendUint16(nil, 0xfeff)
	for _, u := range utf16.Encode([]rune(text)) {
		b = order.AppendUint16(b, u)
	}
	return b
}

// A file means the same in whichever encoding it was saved, and what is kept of it is UTF-8.
func TestS161_AFileIsReadAsUTF8(t *testing.T) {
	const text = "switches:\r\n  - name: läb-𠮷\r\n    portGroups: [{name: web}]\r\n"
	for name, content := range map[string][]byte{
		"UTF-8":                   []byte(text),
		"UTF-8 with a mark":       []byte("\ufeff" + text),
		"UTF-16, small end first": encoded(binary.LittleEndian, text),
		"UTF-16, big end first":   encoded(binary.BigEndian, text),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Read(bytes.NewReader(content))
			if err != nil || string(got) != text {
				t.Fatalf("it is read as %q, %v", got, err)
			}
			cfg, err := Parse("f.yaml", got)
			if err != nil || cfg.Switches[0].Name != "läb-𠮷" {
				t.Errorf("it is %+v, %v", cfg, err)
			}
		})
	}
	cut := encoded(binary.LittleEndian, text)
	if _, err := Read(bytes.NewReader(cut[:len(cut)-1])); err == nil {
		t.Error("half a character is read")
	}
	// What reaches a reader in another way is refused: it could not be kept.
	for _, of := range []func() error{
		func() error { _, err := Parse("f.yaml", encoded(binary.LittleEndian, text)); return err },
		func() error { _, err := ParseDefinition("f.yaml", encoded(binary.BigEndian, text)); return err },
	} {
		if err := of(); err == nil || !strings.Contains(err.Error(), "UTF-16") {
			t.Errorf("the error is %v", err)
		}
	}
}

// decoded is a definition as it is read, before it is checked: not all characters are allowed everywhere.
func decoded(text []byte) (*Definition, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(asYAML(text), &doc); err != nil {
		return nil, err
	}
	d, def := newDecoder("f.json"), &Definition{}
	d.document(&doc, def)
	return def, d.found.err()
}

// Whatever characters a JSON encoder writes as escapes, or leaves as they are, are those that encoding/json reads.
func TestS161_JSONIsReadByTheRulesOfJSON(t *testing.T) {
	for _, word := range []string{`"\ud83d\ude80 a"`, `"\uD842\uDFB7"`, `"\u00fc\/\b\f\n\r\t\"\\"`, `"\ud83d"`,
		`"\ude80\ud83d"`, `"\ud83d\u0041"`, `"\\ud83d"`, "\"a\u2028b\u0085c\"", "\"a\u007f\"", "\"\ufeffx\"", `"𠮷"`} {
		text := []byte(` {"switches":[{"name":"lab","portGroups":[{"name":"web"}]}],"ports":[{"id":"1","description":` +
			word + `}]}`)
		var want struct {
			Ports []struct{ Description string }
		}
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(word, err)
		}
		got, err := decoded(text)
		if err != nil || len(got.Ports) != 1 {
			t.Errorf("%s: %v", word, err)
		} else if got.Ports[0].Description != want.Ports[0].Description {
			t.Errorf("%s is %q, and in JSON %q", word, got.Ports[0].Description, want.Ports[0].Description)
		}
	}
}

// A file may say that it is YAML 1.2, as its first lines or behind comments.
func TestS161_AFileMayNameItsVersionOfYAML(t *testing.T) {
	for _, head := range []string{"%YAML 1.1\n---\n", "%YAML 1.2\n---\n", "# x\n\n%YAML\t1.2 # y\n---\n",
		"\ufeff%YAML 1.2\r\n---\r\n"} {
		if _, err := Parse("f.yaml", []byte(head+sectionHead)); err != nil {
			t.Errorf("%q: %v", head, err)
		}
	}
	for _, head := range []string{"%YAML 2.0\n---\n", "%YAML 1.20\n---\n"} {
		if _, err := Parse("f.yaml", []byte(head+sectionHead)); err == nil {
			t.Errorf("%q is read", head)
		}
	}
}
