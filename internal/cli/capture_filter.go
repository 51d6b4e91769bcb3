package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"heddle/internal/api"
)

// compileFilter makes a program of a pcap-filter(7) expression with tcpdump, whose language it is. It asks no device and needs
// no privilege.
func compileFilter(ctx context.Context, expression string) ([]api.FilterInstruction, error) {
	cmd := exec.CommandContext(ctx, "tcpdump", "-ddd", "-y", "EN10MB", "-s", "262144", "--", expression)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return nil, fmt.Errorf("filter expressions are compiled by tcpdump, which is not installed: install it (apt install tcpdump), or select by --port, --segment, --stage and --reason")
	case errors.As(err, &exit):
		return nil, usagef("filter %q: %s (see pcap-filter(7))", expression, strings.TrimPrefix(strings.TrimSpace(errs.String()), "tcpdump: "))
	case err != nil:
		return nil, fmt.Errorf("compile the filter: %w", err)
	}
	return parseFilter(out.String())
}

// parseFilter reads a program as tcpdump -ddd prints it: the number of instructions, then one a line.
func parseFilter(text string) ([]api.FilterInstruction, error) {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	var n int
	if _, err := fmt.Sscanf(lines[0], "%d", &n); err != nil || n != len(lines)-1 {
		return nil, fmt.Errorf("tcpdump printed a program of another form: it begins with %q and has %d lines", lines[0], len(lines))
	}
	list := make([]api.FilterInstruction, n)
	for i, l := range lines[1:] {
		in := &list[i]
		if _, err := fmt.Sscanf(l, "%d %d %d %d", &in.Code, &in.JumpTrue, &in.JumpFalse, &in.K); err != nil {
			return nil, fmt.Errorf("tcpdump printed an instruction of another form: %q", l)
		}
	}
	return list, nil
}
