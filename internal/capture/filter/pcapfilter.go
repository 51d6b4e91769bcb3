package filter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// Instruction is one of classic BPF (linux/filter.h).
type Instruction struct {
	Code                uint16
	JumpTrue, JumpFalse uint8
	K                   uint32
}

// ErrNoCompiler says that tcpdump is not installed.
var ErrNoCompiler = errors.New("filter expressions are compiled by tcpdump, which is not installed")

// SyntaxError is a fault in the expression, in tcpdump's words.
type SyntaxError struct{ Expression, Says string }

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("filter %q: %s (see pcap-filter(7))", e.Expression, e.Says)
}

// Compile compiles an expression for Ethernet frames with their tags in them. It needs no device and no privilege.
func Compile(ctx context.Context, expression string) ([]Instruction, error) {
	cmd := exec.CommandContext(ctx, "tcpdump", "-ddd", "-y", "EN10MB", "-s", "262144", "--", expression)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return nil, ErrNoCompiler
	case errors.As(err, &exit):
		return nil, &SyntaxError{expression, strings.TrimPrefix(strings.TrimSpace(errs.String()), "tcpdump: ")}
	case err != nil:
		return nil, fmt.Errorf("compile the filter: %w", err)
	}
	return parse(out.String())
}

// parse reads a program as tcpdump -ddd prints it: the number of instructions, then one a line.
func parse(text string) ([]Instruction, error) {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	var n int
	if _, err := fmt.Sscanf(lines[0], "%d", &n); err != nil || n != len(lines)-1 {
		return nil, fmt.Errorf("tcpdump printed a program of another form: it begins with %q and has %d lines",
			lines[0], len(lines))
	}
	list := make([]Instruction, n)
	for i, l := range lines[1:] {
		in := &list[i]
		if _, err := fmt.Sscanf(l, "%d %d %d %d", &in.Code, &in.JumpTrue, &in.JumpFalse, &in.K); err != nil {
			return nil, fmt.Errorf("tcpdump printed an instruction of another form: %q", l)
		}
	}
	return list, nil
}
