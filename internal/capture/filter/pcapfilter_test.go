package filter

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"heddle/internal/test/testkit"
)

func TestProgramsAreReadAsTcpdumpPrintsThem(t *testing.T) {
	got, err := parse("3\n40 0 0 12\n21 0 1 2048\n6 0 0 262144\n")
	want := []Instruction{{Code: 40, K: 12}, {Code: 21, JumpFalse: 1, K: 2048}, {Code: 6, K: 262144}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", "x\n", "2\n6 0 0 1\n", "1\n6 0 0\n", "1\n6 0 999 1\n"} {
		if got, err := parse(bad); err == nil {
			t.Errorf("%q gave %v", bad, got)
		}
	}
}

func TestExpressionsAreCompiledAndFaultsNamed(t *testing.T) {
	testkit.Tool(t, "tcpdump")
	p, err := Compile(t.Context(), "tcp port 443 or vlan 10")
	if err != nil || len(p) < 10 || p[len(p)-1].Code != 6 {
		t.Errorf("%v, %v", p, err)
	}
	var fault *SyntaxError
	if _, err := Compile(t.Context(), "tcp prt 443"); !errors.As(err, &fault) ||
		!strings.Contains(err.Error(), "syntax error") {
		t.Errorf("%v", err)
	}
	if _, err := Compile(t.Context(), "-w /tmp/x"); !errors.As(err, &fault) {
		t.Errorf("an expression is taken for an option: %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := Compile(t.Context(), "tcp"); !errors.Is(err, ErrNoCompiler) {
		t.Errorf("%v", err)
	}
}
