package hosts

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"heddle/internal/cli"
	"heddle/internal/host/interrupt"
)

// joinToken is where the token is by which a host joins. What is on a command line is read by everybody on the machine
// who lists its processes.
type joinToken struct{ word, file string }

func (j *joinToken) flags(d cli.Deps, c *cobra.Command) {
	c.Flags().StringVar(&j.file, "token-file", "", "file with the token; - for standard input")
	c.Flags().StringVar(&j.word, "token", d.Getenv(joinTokenVar), "the token (environment "+joinTokenVar+"), which "+
		"others can\nread in the list of processes: better --token-file")
	c.Flags().Lookup("token").DefValue = "" // which help shows
}

// joinTokenVar is the environment variable with the token.
const joinTokenVar = "HEDDLE_TOKEN"

// read is the token; "" where none is given.
func (j *joinToken) read(ctx context.Context, d cli.Deps) (string, error) {
	var text []byte
	var err error
	switch j.file {
	case "":
		return strings.TrimSpace(j.word), nil
	case "-":
		text, err = io.ReadAll(io.LimitReader(interrupt.Reader(ctx, d.Stdin), 4<<10))
	default:
		text, err = os.ReadFile(j.file)
	}
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	if len(strings.TrimSpace(string(text))) == 0 {
		return "", cli.Usagef("--token-file %s: there is no token; make one at a controller with \"heddle host token\"",
			j.file)
	}
	return strings.TrimSpace(string(text)), nil
}
