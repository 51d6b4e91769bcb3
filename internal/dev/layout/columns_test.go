package layout

import (
	"bytes"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// A line of Go ends at this column; a tab takes four.
const (
	lastColumn = 120
	tabColumns = 4
)

func columns(line string) int {
	return utf8.RuneCountInString(line) + (tabColumns-1)*strings.Count(line, "\t")
}

// inRawStrings returns the lines, from 0, that are inside raw strings, whose text must not be changed.
func inRawStrings(src []byte) map[int]bool {
	var s scanner.Scanner
	set := token.NewFileSet()
	file := set.AddFile("", -1, len(src))
	s.Init(file, src, nil, 0)
	raw := map[int]bool{}
	for {
		pos, tok, text := s.Scan()
		if tok == token.EOF {
			return raw
		}
		if tok == token.STRING && text[0] == '`' {
			first := file.Line(pos) - 1
			for i := range strings.Count(text, "\n") + 1 {
				raw[first+i] = true
			}
		}
	}
}

// longLines are the lines of a Go file, from 1, that are longer than they may be. Generated files have none.
func longLines(src []byte) (lines []int) {
	if bytes.Contains(src[:min(len(src), 500)], []byte("DO NOT EDIT")) {
		return nil
	}
	raw := inRawStrings(src)
	for i, line := range strings.Split(string(src), "\n") {
		if columns(line) > lastColumn && !raw[i] && !strings.HasPrefix(line, "//go:") {
			lines = append(lines, i+1)
		}
	}
	return lines
}

func TestLinesEndAt120Columns(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	seen := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		seen++
		for _, n := range longLines(src) {
			t.Errorf("%s:%d: more than %d columns", path, n, lastColumn)
		}
		return nil
	})
	if err != nil || seen < 100 {
		t.Fatalf("%d files, %v", seen, err)
	}
}

func TestLongLines(t *testing.T) {
	long := strings.Repeat("x", lastColumn)
	src := "package p\n//" + long + "\nvar a = `\n" + long + "\n" + long + "y`\nvar " + long + " int\n\tvar b = 1\n"
	if got := longLines([]byte(src)); len(got) != 2 || got[0] != 2 || got[1] != 6 {
		t.Errorf("long lines %v", got)
	}
}
