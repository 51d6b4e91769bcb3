package docgen

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The page on how a policy field is added names each file that its example stands in, and no other: who adds a field
// finds all places there, and sees when there are more.
func TestThePageOfAFeatureNamesItsFiles(t *testing.T) {
	const page = "docs/explanation/add-a-feature.md"
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	policy, _, _ := strings.Cut(string(text), "\n# Add a capability of processes")
	var named []string
	path := regexp.MustCompile("`((?:bpf|docs|internal)/[^`]*\\.[a-z]+|CHANGELOG\\.md)`")
	for _, m := range path.FindAllStringSubmatch(policy, -1) {
		if m[1] != "docs/reference/statements.yaml" {
			named = append(named, m[1])
		}
	}
	slices.Sort(named)
	named = slices.Compact(named)
	words := regexp.MustCompile("[rR]outerAdvertisements|GuestRouterAdvertisement|guest-router-advertisement|" +
		"GUEST_ROUTER_ADVERTISEMENT|RULE_NO_ROUTER")
	stands := slices.DeleteFunc(filesWith(t, words, "CHANGELOG.md", "bpf", "docs", "internal"), func(path string) bool {
		return path == page || path == "internal/dev/docgen/addfeature_test.go"
	})
	if !slices.Equal(named, stands) {
		t.Errorf("the page names\n%s\nand the field stands in\n%s", strings.Join(named, "\n"),
			strings.Join(stands, "\n"))
	}
	directories := map[string]bool{}
	for _, f := range stands {
		dir := filepath.Dir(f)
		if strings.HasPrefix(dir, "docs/how-to/") { // its folders sort the pages by task
			dir = "docs/how-to"
		}
		directories[dir] = true
	}
	const files, dirs = 35, 21 // these only fall
	if len(stands) > files || len(directories) > dirs {
		t.Errorf("the field stands in %d files of %d directories; it was in %d of %d", len(stands), len(directories),
			files, dirs)
	}
}

// The page on how a capability is added names each file of its examples, and one file of the program knows each: its
// list of features.
func TestThePageOfACapabilityNamesItsFiles(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/explanation/add-a-feature.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, capability, _ := strings.Cut(string(text), "\n# Add a capability of processes")
	for folder, list := range map[string]string{
		"internal/feature/staticports/fleet": "cmd/heddle-controller/features/features.go",
		"internal/feature/probes/host":       "cmd/heddle/features/hosts/hosts.go",
	} {
		t.Run(folder, func(t *testing.T) { pageNames(t, capability, folder, list) })
	}
}

// pageNames holds the text of a page against the files of a feature's half, and against those that know it.
func pageNames(t *testing.T, text, folder, list string) {
	t.Helper()
	var named []string
	for _, m := range regexp.MustCompile("`("+folder+"/[^`]+)`").FindAllStringSubmatch(text, -1) {
		named = append(named, m[1])
	}
	slices.Sort(named)
	tests := func(path string) bool { return strings.HasSuffix(path, "_test.go") }
	stands := slices.DeleteFunc(filesWith(t, regexp.MustCompile(""), folder), tests)
	if !slices.Equal(named, stands) {
		t.Errorf("the page names\n%s\nand there are\n%s", strings.Join(named, "\n"), strings.Join(stands, "\n"))
	}
	know := slices.DeleteFunc(filesWith(t, regexp.MustCompile(`"heddle/`+folder+`"`), "cmd", "internal"), tests)
	if !slices.Equal(know, []string{list}) || !strings.Contains(text, "`"+list+"`") {
		t.Errorf("these know the feature: %s; want %s alone, which the page names", strings.Join(know, " "), list)
	}
}

// filesWith are the files of sources and pages in which words stand, by their paths below the root.
func filesWith(t *testing.T, words *regexp.Regexp, in ...string) (list []string) {
	t.Helper()
	for _, top := range in {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) == ".o" {
				return err
			}
			text, err := os.ReadFile(path)
			if err == nil && words.Match(text) {
				path, err = filepath.Rel(root, path)
				list = append(list, filepath.ToSlash(path))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(list)
	return list
}
