package docgen

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// handwritten and generated pages, for which every link and command is checked.
var pagePatterns = []string{"*.md", "docs/*.md", "docs/*/*.md", "docs/*/*/*.md"}

// eachPage calls visit with every page of the repository, its path below the repository's root first.
func eachPage(t *testing.T, visit func(path, text string)) {
	t.Helper()
	for _, pattern := range pagePatterns {
		names, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(names) == 0 {
			t.Fatalf("pages %s: %d found, error %v", pattern, len(names), err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			path, err := filepath.Rel(root, name)
			if err != nil {
				t.Fatal(err)
			}
			visit(filepath.ToSlash(path), string(text))
		}
	}
}

func TestLinksInThePagesLeadSomewhere(t *testing.T) {
	links, read := 0, headings{}
	eachPage(t, func(path, text string) {
		for _, target := range relativeLinks(text) {
			links++
			if err := read.checkLink(root, path, target); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
	})
	if links < 50 {
		t.Errorf("only %d links found in all pages", links)
	}
}

// TestPagesAreListedByTask: a page that docs/README.md does not name is not found.
func TestPagesAreListedByTask(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/README.md"))
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, target := range relativeLinks(string(text)) {
		listed["docs/"+target] = true
	}
	eachPage(t, func(path, _ string) {
		if strings.HasPrefix(path, "docs/") && path != "docs/README.md" && !listed[path] {
			t.Errorf("docs/README.md does not link to %s", path)
		}
	})
}

// TestTheReadmeIsShort: it says what Heddle is and where to go on; docs/README.md has the rest.
func TestTheReadmeIsShort(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(text), "\n"); lines > 110 {
		t.Errorf("README.md has %d lines, more than 110", lines)
	}
	if links := strings.Count(string(text), "]("); links > 30 {
		t.Errorf("README.md has %d links, more than 30", links)
	}
}

func TestCheckLink(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "docs/a.md", "# The page\n\n## `heddle port list`, and more\n\n## Twice\n\n## Twice\n\n<a "+
		"id=\"k9\"></a>K9\n")
	for target, good := range map[string]bool{
		"docs/a.md": true, "docs": true, "docs/a.md#the-page": true, "docs/a.md#heddle-port-list-and-more": true,
		"docs/a.md#twice-1": true, "docs/a.md#k9": true,
		"docs/b.md": false, "docs/a.md#twice-2": false, "docs/a.md#other": false, "a.md": false,
	} {
		t.Run(target, func(t *testing.T) {
			if err := (headings{}).checkLink(dir, "README.md", target); (err == nil) != good {
				t.Errorf("%s: %v", target, err)
			}
		})
	}
	if err := (headings{}).checkLink(dir, "docs/a.md", "#the-page"); err != nil {
		t.Error(err)
	}
	got := relativeLinks("[a](b.md \"title\") `[no](code.md)` ![p](c.svg) " +
		"[x](https://example.org)\n```sh\n[no](fence.md)\n```\n[d](#e)")
	if want := "[b.md c.svg #e]"; fmt.Sprint(got) != want {
		t.Errorf("relativeLinks: %v, want %s", got, want)
	}
}

var (
	fence    = regexp.MustCompile("(?ms)^[ \t]*```.*?^[ \t]*```[ \t]*$")
	codeSpan = regexp.MustCompile("`[^`\n]*`")
	link     = regexp.MustCompile(`\]\(([^()\s]+)(?: "[^"]*")?\)`)
	heading  = regexp.MustCompile(`(?m)^#{1,6} +(.*)$`)
	idAnchor = regexp.MustCompile(`<a id="([^"]+)"></a>`)
	notSlug  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// relativeLinks are the targets of a page's links into the repository, in order.
func relativeLinks(text string) []string {
	text = codeSpan.ReplaceAllString(fence.ReplaceAllString(text, ""), "")
	var targets []string
	for _, m := range link.FindAllStringSubmatch(text, -1) {
		if !strings.Contains(m[1], "://") && !strings.HasPrefix(m[1], "mailto:") {
			targets = append(targets, m[1])
		}
	}
	return targets
}

// headings are the names that links to a file can lead to, by file: many links lead to few files.
type headings map[string]map[string]bool

// of reads them, once.
func (read headings) of(file string) (map[string]bool, error) {
	if there, ok := read[file]; ok {
		return there, nil
	}
	text, err := os.ReadFile(file)
	if err == nil {
		read[file] = anchors(string(text))
	}
	return read[file], err
}

// checkLink says whether a link on page leads to a file below root and, where it names one, to a heading in it.
func (read headings) checkLink(root, page, target string) error {
	name, anchor, _ := strings.Cut(target, "#")
	file := filepath.Join(root, filepath.FromSlash(page))
	if name != "" {
		file = filepath.Join(filepath.Dir(file), filepath.FromSlash(name))
	}
	if anchor == "" {
		if _, err := os.Stat(file); err != nil {
			return fmt.Errorf("the link to %s leads nowhere", target)
		}
		return nil
	}
	there, err := read.of(file)
	if err != nil {
		return fmt.Errorf("the link to %s leads nowhere", target)
	}
	if !there[anchor] {
		return fmt.Errorf("the link to %s: the page has no such heading", target)
	}
	return nil
}

// anchors are the names that a link can lead to: those that the page sets itself (<a id="name">), and those that GitHub
// gives to its headings: lower case, spaces as dashes, no other punctuation, and a number behind one that was there
// before.
func anchors(text string) map[string]bool {
	found, times := map[string]bool{}, map[string]int{}
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		slug := strings.ReplaceAll(notSlug.ReplaceAllString(strings.ToLower(strings.TrimSpace(m[1])), ""), " ", "-")
		n := times[slug]
		times[slug]++
		if n > 0 {
			slug = fmt.Sprintf("%s-%d", slug, n)
		}
		found[slug] = true
	}
	for _, m := range idAnchor.FindAllStringSubmatch(text, -1) {
		found[m[1]] = true
	}
	return found
}
