package layout

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// exception is a comparison with words that stays: those of a file whose text begins so, and why.
type exception struct{ file, text, why string }

// exceptions are the texts that the product compares, each for a reason. Texts of Heddle's own are none: whoever needs
// to know what happened asks for a code.
func exceptions() []exception {
	const commands = "the name of a command, as cobra makes it of the tree"
	const captured = "the words of a capture file, whose form docs/reference/capture.md gives"
	const again = "an error is logged again when it says something else; its words decide nothing more"
	return []exception{
		{"internal/flow/export/session.go", errorText, again},
		{"internal/flow/export/stream.go", errorText, again},
		{"internal/flow/meter/table.go", errorText, again},
		{"internal/flow/metering/flowing.go", errorText, again},
		{"internal/diagnose/trace/pcapng.go", "heddle capture", captured},
		{"internal/diagnose/trace/pcapown.go", "uplink of switch ", captured},
		{"internal/diagnose/trace/pcapown.go", "in segments of ", captured},
		{"internal/diagnose/trace/pcapown.go", "from the host", captured},
		{"internal/cli/tree/completenames.go", "heddle ", commands},
		{"internal/cli/spelling.go", "heddle ", commands},
		{"internal/flow/export/tls.go", "remote error",
			"crypto/tls says by this word alone that the other side sent it"},
		{"internal/identity/client.go", "remote error", "the same"},
		{"internal/lab/qemu/image/image.go", "No space left", "what mke2fs and cpio print is all that they say"},
		{"internal/lab/qemu/image/image.go", errorText, "the same"},
		{"internal/lab/report/environment.go", "model name", "a key of /proc/cpuinfo"},
	}
}

// errorText stands for the text of an error that is looked through.
const errorText = "err.Error()"

// Nobody decides by the words of a sentence, which may be reworded: not by comparing with one, nor by looking for words
// in one, and least of all in the text of an error.
func TestNoSentenceSteers(t *testing.T) {
	found := map[exception]bool{}
	files := 0
	err := filepath.WalkDir("../../..", func(path string, d fs.DirEntry, err error) error {
		rel := filepath.ToSlash(strings.TrimPrefix(path, "../../../"))
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(rel, "internal/dev") || strings.HasPrefix(rel, "internal/test") ||
			d.Name() == ".git" || d.Name() == "testdata"):
			return filepath.SkipDir // what makes and tests the product
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
			strings.HasSuffix(path, ".pb.go"):
			return nil
		}
		files++
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, c := range comparisons(file) {
			i := slices.IndexFunc(exceptions(), func(e exception) bool {
				return e.file == rel && strings.HasPrefix(c.text, e.text)
			})
			if i < 0 {
				t.Errorf("%s:%d: %q is compared: give what it says a code", rel, set.Position(c.pos).Line, c.text)
				continue
			}
			found[exceptions()[i]] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 500 {
		t.Errorf("only %d files are found: this test is void", files)
	}
	for _, e := range exceptions() {
		if !found[e] {
			t.Errorf("%s compares nothing with %q any more: take the exception out", e.file, e.text)
		}
	}
}

// comparison is a place where a text is compared or looked through.
type comparison struct {
	pos  token.Pos
	text string
}

// looks are the functions of package strings, and of bytes, that look for words in a text.
var looks = []string{"Contains", "HasPrefix", "HasSuffix", "EqualFold", "Index", "LastIndex", "Count", "Cut",
	"CutPrefix", "CutSuffix", "Compare"}

// comparisons are those of a file with sentences, and with the texts of errors.
func comparisons(file *ast.File) (all []comparison) {
	note := func(list ...ast.Expr) {
		for _, e := range list {
			if text, is := sentenceOf(e); is {
				all = append(all, comparison{e.Pos(), text})
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.BinaryExpr:
			if x.Op == token.EQL || x.Op == token.NEQ {
				note(x.X, x.Y)
			}
		case *ast.CaseClause:
			note(x.List...)
		case *ast.SwitchStmt:
			if x.Tag != nil && isErrorText(x.Tag) {
				note(x.Tag)
			}
		case *ast.CallExpr:
			if looksFor(x) {
				note(x.Args...)
			}
		}
		return true
	})
	return all
}

// looksFor says whether a call looks for words in a text: strings.Contains, or a match of a regular expression.
func looksFor(call *ast.CallExpr) bool {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	of, _ := f.X.(*ast.Ident)
	return of != nil && (of.Name == "strings" || of.Name == "bytes") && slices.Contains(looks, f.Sel.Name) ||
		f.Sel.Name == "MatchString"
}

// words are two words with a space between.
var words = regexp.MustCompile(`[\pL\pN\pP]+ +[\pL\pN]`)

// sentenceOf is the text of a literal with several words in it, or errorText.
func sentenceOf(e ast.Expr) (string, bool) {
	if isErrorText(e) {
		return errorText, true
	}
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(lit.Value)
	return text, err == nil && words.MatchString(text)
}

// isErrorText says whether an expression is err.Error() of something.
func isErrorText(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok || len(call.Args) != 0 {
		return false
	}
	f, ok := call.Fun.(*ast.SelectorExpr)
	return ok && f.Sel.Name == "Error"
}

func TestSentencesAreFound(t *testing.T) {
	for _, c := range []struct{ name, code, want string }{
		{"comparison", `x == "it was released"`, "it was released"},
		{"the other way round", `"was released" != x`, "was released"},
		{"words of an error", `strings.Contains(err.Error(), "timeout")`, errorText},
		{"an error's text", `err.Error() == "EOF"`, errorText},
		{"a part", `strings.HasSuffix(x, ": load")`, ": load"},
		{"a match", `r.MatchString(err.Error())`, errorText},
		{"a word", `x == "released" || strings.Contains(x, "no-uplink") || x == " " || x == ", "`, ""},
		{"a message", `fmt.Errorf("it was released: %w", err) == nil`, ""},
		{"lines", `strings.Split(err.Error(), "\n") == nil`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			file, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\nvar y = "+c.code, 0)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if all := comparisons(file); len(all) > 0 {
				got = all[0].text
			}
			if got != c.want {
				t.Errorf("%s: %q, want %q", c.code, got, c.want)
			}
		})
	}
	file, err := parser.ParseFile(token.NewFileSet(), "x.go",
		"package x\nfunc f(x string) {\n\tswitch x {\n\tcase \"not used\":\n\t}\n}", 0)
	if err != nil || len(comparisons(file)) != 1 {
		t.Errorf("a case is not found: %v", err)
	}
}
