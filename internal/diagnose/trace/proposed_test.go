package trace_test

import (
	"testing"

	"heddle/internal/diagnose/trace"
	"heddle/internal/test/testkit/proposals"
)

func TestProposedCommandsWorkAsPrinted(t *testing.T) {
	commands, file := trace.Proposed(t)
	proposals.Try(t, commands, file)
}
