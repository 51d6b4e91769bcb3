package docgen

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"heddle/internal/plan"
)

// The page of the configuration file is written by hand but for the table of policy fields, which stands between two
// comments.
const (
	configurationPath = "docs/reference/configuration.md"
	fieldsBegin       = "<!-- policy fields: made from internal/plan/fields.go by internal/dev/docgen (make " +
		"generate) -->\n"
	fieldsEnd = "<!-- end of policy fields -->\n"
)

// configurationPage is the page with the table of the policy fields as they are.
func configurationPage(root string) (string, error) {
	return between(root, configurationPath, fieldsBegin, fieldTable(), fieldsEnd)
}

func fieldTable() string {
	var t strings.Builder
	t.WriteString("| field | values | when no level sets it |\n|---|---|---|\n")
	for _, f := range plan.Fields() {
		fmt.Fprintf(&t, "| `%s` | %s | %s |\n", f.Path, f.Values, f.Default)
	}
	return t.String()
}

// between is a page that is written by hand, with what stands between two comments made anew.
func between(root, path, begin, made, end string) (string, error) {
	b, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(path)))
	if err != nil {
		return "", fmt.Errorf("read a page with a generated table: %w", err)
	}
	return within(string(b), path, begin, made, end)
}

// within is between for the text of a page.
func within(text, path, begin, made, end string) (string, error) {
	before, rest, ok := strings.Cut(text, begin)
	_, after, ends := strings.Cut(rest, end)
	if !ok || !ends {
		return "", fmt.Errorf("%s: the comments %q and %q that hold the generated table are not there", path,
			strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return before + begin + made + end + after, nil
}
