package docgen

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const root = "../../.."

func TestPagesAreUpToDate(t *testing.T) {
	pages, err := Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pages {
		got, err := os.ReadFile(filepath.Join(root, p.Path))
		if err != nil {
			t.Error(err)
		} else if d := cmp.Diff(strings.Split(p.Text, "\n"), strings.Split(string(got), "\n")); d != "" {
			t.Errorf("%s is not up to date: run make generate (or go generate ./internal/dev/docgen); -made "+
				"+committed:\n%s", p.Path, d)
		}
	}
}

func TestCovers(t *testing.T) {
	for name, want := range map[string][]string{
		"TestS14_UnknownUnicast":   {"S14"},
		"TestS14_S15_Limit":        {"S14", "S15"},
		"TestS3_D2_SeenMAC":        {"S3", "D2"},
		"TestS14UnknownUnicast":    nil,
		"TestSomethingElse":        nil,
		"TestLater_S14_OfTheName":  nil,
		"TestS100_1000_Characters": {"S100"},
		"TestTime_S14_S15_Limit":   {"S14", "S15"},
		"TestTime_D27_Storm":       {"D27"},
		"TestTime_ChangeInForce":   nil,
		"TestTimeS14_Limit":        nil,
	} {
		t.Run(name, func(t *testing.T) {
			if got := numbersOf(name); !cmp.Equal(got, want) {
				t.Errorf("numbersOf(%s) = %v, want %v", name, got, want)
			}
		})
	}
}

// write makes a file of a made-up repository.
func write(t *testing.T, root, name, text string) {
	t.Helper()
	name = filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestRings(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "internal/lab/lab_test.go", `package lab
func TestS1_Direct(t *T) { testkit.NS(t, "a") }
func TestS2_ByHelper(t *T) { hosts(t) }
func TestS3_Root(t *T) { testkit.Root(t) }
func TestS4_Pure(t *T) {}
func hosts(t *T) { more(t) }
func more(t *T) { testkit.NS(t, "a") }
`)
	write(t, dir, "internal/test/difftest/x_test.go", "package difftest\nfunc TestS5_ByPackage(t *T) {}\n")
	tests, err := findTests(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]ring{}
	for _, x := range tests {
		got[x.name] = x.ring
	}
	want := map[string]ring{"TestS1_Direct": namespaces, "TestS2_ByHelper": namespaces, "TestS3_Root": kernel,
		"TestS4_Pure": pure, "TestS5_ByPackage": kernel}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestUnknownNumberIsRefused(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "docs/reference/statements.yaml", "statements:\n- {number: 1, section: a, area: core, text: b}\n")
	write(t, dir, "internal/x/x_test.go", "package x\nfunc TestS2_No(t *T) {}\n")
	if _, err := behaviourPage(dir); err == nil || !strings.Contains(err.Error(), "x_test.go:2: TestS2_No names S2") {
		t.Errorf("behaviourPage: %v", err)
	}
}

func TestBehaviourPageCountsAndLinks(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "docs/reference/statements.yaml", `statements:
- {number: 1, section: a, area: core, text: one}
- {number: 2, section: a, area: core, text: two}
- {number: 3, section: a, area: core, text: three}
decisions:
- {number: 1, text: four}
`)
	write(t, dir, "internal/x/x_test.go", "package x\nfunc TestS2_D1_Yes(t *T) {}\n")
	write(t, dir, "internal/model/x_test.go", "package model\nfunc TestS3_Yes(t *T) {}\n")
	page, err := behaviourPage(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| core | 1 of 3 |\n",
		"| S1 | one | not yet: core |  |  |  |\n",
		"| S2 | two | implemented | [Yes](../../internal/x/x_test.go \"TestS2_D1_Yes in x_test.go\") |  |  |\n",
		"| S3 | three | in the model | [Yes](../../internal/model/x_test.go \"TestS3_Yes in x_test.go\") |  |  |\n",
		"| D1 | four | [Yes](../../internal/x/x_test.go \"TestS2_D1_Yes in x_test.go\") |\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
}
