package yamltext

import (
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"heddle/internal/spec/printable"
)

// FromJSON writes a JSON document as YAML with the fields in their order: JSON is YAML in another style. Readers of
// YAML 1.1, such as PyYAML and so Ansible, read it as meant, too.
func FromJSON(b []byte) ([]byte, error) {
	return Tagged(b, func(string) string { return "" })
}

// Tagged is FromJSON with a tag before each text for which tag gives one, such as "!unsafe".
func Tagged(b []byte, tag func(text string) string) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(b, &doc); err != nil {
		return nil, err
	}
	tagTexts(&doc, tag)
	blockStyle(&doc)
	out, err := yaml.Dump(&doc)
	return []byte(printable.Lines(string(out))), err
}

// tagTexts gives texts their tags. JSON has all texts in quotes.
func tagTexts(n *yaml.Node, tag func(text string) string) {
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			continue // a key
		}
		if c.Kind == yaml.ScalarNode && c.Style&yaml.DoubleQuotedStyle != 0 {
			if is := tag(c.Value); is != "" {
				c.Tag, c.Style = is, c.Style|yaml.TaggedStyle
			}
		}
		tagTexts(c, tag)
	}
}

// blockStyle removes JSON's brackets, and its quotes where a text cannot be read as anything else.
func blockStyle(n *yaml.Node) {
	text := n.Kind == yaml.ScalarNode && n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0
	n.Style = 0
	switch {
	// escapes are interpreted only between double quotes
	case text && (otherwise(n.Value) || printable.Text(n.Value) != n.Value):
		n.Style = yaml.DoubleQuotedStyle
	case n.Kind == yaml.ScalarNode && !text:
		n.Value = withPoint(n.Value)
	case len(n.Content) == 0 && n.Kind != yaml.ScalarNode:
		n.Style = yaml.FlowStyle // an empty list or mapping has no other style
	}
	for _, c := range n.Content {
		blockStyle(c)
	}
}

// otherwise reports whether some version of YAML reads a text without quotes as something else: a truth value, null, a
// merge key, or anything that begins like a number, such as a number of base 60 (12:30), a date or a MAC address.
func otherwise(text string) bool {
	words := []string{"", "~", "null", "y", "n", "yes", "no", "on", "off", "true", "false", "<<", "="}
	return slices.Contains(words, strings.ToLower(text)) || likeNumber.MatchString(text)
}

// likeNumber matches the beginning of numbers and dates, in any version of YAML.
var likeNumber = regexp.MustCompile(`^[-+]?\.?([0-9]|(?i:inf|nan))`)

// withPoint adds to a number with an exponent the point without which it is a text in YAML 1.1: 1e+21 → 1.0e+21.
func withPoint(number string) string {
	i := strings.IndexAny(number, "eE")
	if i < 0 || number[0] == 'f' || number[0] == 't' || number[0] == 'n' || strings.Contains(number, ".") {
		return number
	}
	return number[:i] + ".0" + number[i:]
}
