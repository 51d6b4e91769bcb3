package advise_test

import (
	"testing"

	"heddle/internal/diagnose/advise"
	"heddle/internal/test/testkit/proposals"
)

func TestProposedCommandsWorkAsPrinted(t *testing.T) {
	commands, file := advise.Proposed(t)
	if len(commands) < 30 {
		t.Errorf("only %d commands", len(commands))
	}
	proposals.Try(t, commands, file)
}
