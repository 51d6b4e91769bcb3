package docgen

import (
	"fmt"
	"regexp"
	"strings"
)

// The declarations of a schema that is formatted as buf does it: one on a line, its comment in the lines above it.
var (
	blockLine = regexp.MustCompile(`^(message|enum|service|oneof) (\w+) \{(\})?$`)
	callLine  = regexp.MustCompile(`^rpc (\w+)\(.*\);$`)
	fieldLine = regexp.MustCompile(`^(?:[\w.<>, ]+ )?(\w+) = \d+( \[.*\])?;$`)
	otherLine = regexp.MustCompile(`^(syntax|package|import|option|reserved) .*;$`)
)

// schemaComments reads the comments of a file of the schema into comments, by the declaration's name inside its block:
// "Port", "Port.name", "PortService.MovePort". A field of a oneof stands under its message. Descriptors that are
// compiled into a program have no comments, so that they are read from the source.
func schemaComments(name, text string, comments map[string]string) error {
	var blocks []string
	var above []string
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if c, ok := strings.CutPrefix(line, "//"); ok {
			above = append(above, strings.TrimSpace(c))
			continue
		}
		scope := strings.Join(blocks, "")
		said := paragraphs(above)
		above = nil
		switch {
		case line == "" || otherLine.MatchString(line):
		case line == "}" && len(blocks) > 0:
			blocks = blocks[:len(blocks)-1]
		case blockLine.MatchString(line):
			m := blockLine.FindStringSubmatch(line)
			comments[scope+m[2]] = said
			if m[3] != "" {
				continue
			}
			inside := m[2] + "."
			if m[1] == "oneof" {
				inside = ""
			}
			blocks = append(blocks, inside)
		case callLine.MatchString(line):
			comments[scope+callLine.FindStringSubmatch(line)[1]] = said
		case fieldLine.MatchString(line):
			comments[scope+fieldLine.FindStringSubmatch(line)[1]] = said
		default:
			return fmt.Errorf("%s:%d: %q is no declaration that the page of the API can show: "+
				"write one on a line, with its comment above it", name, i+1, line)
		}
	}
	return nil
}

// paragraphs are the lines of a comment in one, but for a blank line between paragraphs.
func paragraphs(lines []string) string {
	var b strings.Builder
	for i, l := range lines {
		switch {
		case l == "":
			b.WriteString("\n\n")
		case i > 0 && lines[i-1] != "":
			b.WriteString(" " + l)
		default:
			b.WriteString(l)
		}
	}
	return b.String()
}
