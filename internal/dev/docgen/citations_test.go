package docgen

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	citedPage   = regexp.MustCompile(`[\w./-]*\w\.md\b`)
	citedFact   = regexp.MustCompile(`\bK[1-9][0-9]?\b`)
	definedFact = regexp.MustCompile(`<a id="(k[1-9][0-9]?)"></a>\*\*(K[1-9][0-9]?)\.`)
	citedOther  = regexp.MustCompile(`(?i)\b(?:semantics|design|house|kernel[- ]notes?) (?:§|K?[0-9])[\d.]*`)
	goComment   = regexp.MustCompile(`(?m)(?:^|\s)//.*$`)
)

// facts are the numbers of the facts that docs/explanation/kernel.md defines.
func facts(text string) map[string]bool {
	found := map[string]bool{}
	for _, m := range definedFact.FindAllStringSubmatch(text, -1) {
		if m[1] == strings.ToLower(m[2]) {
			found[m[2]] = true
		}
	}
	return found
}

// strayCitations are the pages and facts that text cites and that do not exist, among them sections of notes outside
// the repository. A page is cited by its path from the repository's root, by one from the citing file's folder, or by
// its name alone.
func strayCitations(text, folder string, pages, facts map[string]bool) []string {
	var stray []string
	for _, name := range citedPage.FindAllString(text, -1) {
		if !pages[strings.TrimPrefix(name, "./")] && !pages[path.Join(folder, name)] {
			stray = append(stray, name)
		}
	}
	stray = append(stray, citedOther.FindAllString(text, -1)...)
	for _, k := range citedFact.FindAllString(text, -1) {
		if !facts[k] {
			stray = append(stray, k)
		}
	}
	return stray
}

// TestCitationsLeadSomewhere: a page, or a comment in Go or C, cites only pages of this repository, and only facts
// about the kernel that docs/explanation/kernel.md has.
func TestCitationsLeadSomewhere(t *testing.T) {
	kernel, err := os.ReadFile(filepath.Join(root, "docs/explanation/kernel.md"))
	if err != nil {
		t.Fatal(err)
	}
	known, pages, texts := facts(string(kernel)), map[string]bool{}, map[string]string{}
	err = filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		switch {
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && name != "." || name == "bin" ||
			name == "internal/dev/docgen"):
			return filepath.SkipDir
		case path.Ext(name) == ".md":
			pages[name], pages[path.Base(name)] = true, true
			pages[strings.TrimPrefix(name, "docs/")] = true // as the program says: how-to/x.md of the documentation
		case path.Ext(name) != ".go" && path.Ext(name) != ".h" && path.Ext(name) != ".c":
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		texts[name] = string(text)
		if path.Ext(name) == ".go" {
			texts[name] = strings.Join(goComment.FindAllString(string(text), -1), "\n")
		}
		return nil
	})
	if err != nil || len(known) < 10 || len(texts) < 500 {
		t.Fatalf("%d facts, %d files, error %v", len(known), len(texts), err)
	}
	for name, text := range texts {
		if path.Ext(name) == ".md" {
			text = fence.ReplaceAllString(text, "")
		}
		for _, what := range strayCitations(text, path.Dir(name), pages, known) {
			t.Errorf("%s cites %s, which does not exist", name, what)
		}
	}
}

func TestStrayCitations(t *testing.T) {
	pages := map[string]bool{"docs/a/one.md": true, "one.md": true}
	known := facts(`<a id="k9"></a>**K9. It waits.** <a id="k1"></a>**K2. Anchor and number differ.**`)
	for text, want := range map[string]string{
		"see one.md, docs/a/one.md and ../a/one.md (K9)": "",
		"see two.md":                 "two.md",
		"see docs/b/one.md":          "docs/b/one.md",
		"as K2 and K40 say":          "K2 K40",
		"as semantics §9.3 has it":   "semantics §9.3",
		"see kernel notes K9":        "kernel notes K9",
		"1K, K8s and AK47 are no K9": "",
	} {
		t.Run(text, func(t *testing.T) {
			if got := strings.Join(strayCitations(text, "docs/a", pages, known), " "); got != want {
				t.Errorf("%q: stray %q, want %q", text, got, want)
			}
		})
	}
}
