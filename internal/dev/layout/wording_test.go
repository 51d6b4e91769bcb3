package layout

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// oldWords are words that texts for people, logs, fields and the schema had, and what they say now.
var oldWords = map[string]*regexp.Regexp{
	"active or applied": regexp.MustCompile(`(?i:\b(in|into) force\b)|[iI]nForce|\bin_force`),
	"fix":               regexp.MustCompile(`\bmend(s|ed|ing)?\b`),
}

// TestTextsHaveTheWordsOfTheGlossary: a log line, a field of JSON, an error and a page say one thing by one word. What
// a function or a variable is called inside is nobody else's business.
func TestTextsHaveTheWordsOfTheGlossary(t *testing.T) {
	literals := 0
	eachFile(t, ".go", func(path, text string) {
		if strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, ".pb.go") {
			return
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
				literals++
				worded(t, path, l.Value)
			}
			return true
		})
	})
	if literals < 1000 {
		t.Errorf("only %d texts", literals)
	}
	for _, ext := range []string{".proto", ".md"} {
		eachFile(t, ext, func(path, text string) {
			if filepath.Base(path) != "CHANGELOG.md" { // tells of what was
				worded(t, path, text)
			}
		})
	}
}

func worded(t *testing.T, path, text string) {
	t.Helper()
	for now, old := range oldWords {
		if at := old.FindStringIndex(text); at != nil {
			t.Errorf("%s: %q: say %s", path, text[max(0, at[0]-30):min(len(text), at[1]+30)], now)
		}
	}
}

// eachFile visits the files of the repository with that ending.
func eachFile(t *testing.T, ext string, visit func(path, text string)) {
	t.Helper()
	err := filepath.WalkDir("../../..", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ext {
			if err == nil && d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules" || d.Name() == "testdata") {
				return filepath.SkipDir
			}
			return err
		}
		text, err := os.ReadFile(path)
		if err == nil {
			visit(path, string(text))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestOldWordsAreFound(t *testing.T) {
	for text, found := range map[string]bool{"the plan is in force": true, "`json:\"inForceAt\"`": true,
		"in_force_seconds": true, "put into force": true, "in forced mode": false, "mends it": true,
		"recommended": false, "WhatIsInForceStays": true, "In force: since": true,
		"amended": false, "active": false, "reinforced": false} {
		t.Run(text, func(t *testing.T) {
			got := false
			for _, old := range oldWords {
				got = got || old.MatchString(text)
			}
			if got != found {
				t.Errorf("found: %v", got)
			}
		})
	}
}
