package capture

import (
	"context"
	"errors"
	"fmt"

	"heddle/internal/api"
	"heddle/internal/capture/filter"
	"heddle/internal/cli"
)

// compileFilter compiles a pcap-filter(7) expression.
func compileFilter(ctx context.Context, expression string) ([]api.FilterInstruction, error) {
	program, err := filter.Compile(ctx, expression)
	var fault *filter.SyntaxError
	switch {
	case errors.Is(err, filter.ErrNoCompiler):
		return nil, fmt.Errorf("%w: install it (apt install tcpdump), or select by --port, --vlan, --stage and "+
			"--reason", err)
	case errors.As(err, &fault):
		return nil, &cli.UsageError{Err: err}
	case err != nil:
		return nil, err
	}
	list := make([]api.FilterInstruction, len(program))
	for i, in := range program {
		list[i] = api.FilterInstruction{Code: in.Code, JumpTrue: in.JumpTrue, JumpFalse: in.JumpFalse, K: in.K}
	}
	return list, nil
}
