package docgen

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"heddle/cmd/heddle/features"
	"heddle/internal/cli"
	"heddle/internal/cli/tree"
	"heddle/internal/controller/cmd"
	vspherecmd "heddle/internal/vsphere/cmd"
)

// commandTree is the program's command tree, with nothing behind it.
func commandTree() *cobra.Command {
	root := tree.NewRoot(cli.Deps{
		Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard,
		Getenv: func(string) string { return "" },
	}, features.All()...)
	root.InitDefaultCompletionCmd("completion")
	return root
}

// WriteManual writes the manual pages, one for each command and heddle.yaml(5) from the repository's page of the
// configuration, and the completions for bash, zsh and fish below share, which is laid out as /usr/share. date, in
// seconds since 1970, stands on the pages.
func WriteManual(repository, share string, date int64) error {
	root := commandTree()
	root.DisableAutoGenTag = true
	at := time.Unix(date, 0).UTC()
	man := filepath.Join(share, "man", "man1")
	if err := os.MkdirAll(man, 0o755); err != nil {
		return err
	}
	overview(root)
	err := doc.GenManTreeFromOpts(root, doc.GenManTreeOptions{
		Header: &doc.GenManHeader{Section: "1", Date: &at, Source: "Heddle", Manual: "Heddle"}, Path: man,
		CommandSeparator: "-",
	})
	return errors.Join(err, writeConfigurationManual(repository, filepath.Join(share, "man", "man5"), at),
		completions(share, root))
}

// WriteControllerManual writes the same of heddle-controller, and the page of heddle-vsphere, which its package has.
func WriteControllerManual(share string, date int64) error {
	root, vcenter := cmd.New(io.Discard, "", nil), vspherecmd.New()
	root.DisableAutoGenTag = true
	at := time.Unix(date, 0).UTC()
	man := filepath.Join(share, "man", "man1")
	if err := os.MkdirAll(man, 0o755); err != nil {
		return err
	}
	options := doc.GenManTreeOptions{
		Header: &doc.GenManHeader{Section: "1", Date: &at, Source: "Heddle", Manual: "Heddle"}, Path: man,
		CommandSeparator: "-",
	}
	root.Long += "\n\n# FILES\n\n*/etc/default/heddle-controller*\n: flags of the service\n\n" +
		"*/var/lib/heddle-controller*\n: all that the controller keeps\n\n" +
		"*/run/heddle-controller/api.sock*\n: socket for commands\n\n# EXIT STATUS\n\n" +
		"0 it was stopped; 1 something went wrong, or the command line is wrong.\n"
	return errors.Join(doc.GenManTreeFromOpts(root, options), doc.GenManTreeFromOpts(vcenter, options),
		completions(share, root))
}

// completions writes the scripts by which shells complete a program's words.
func completions(share string, root *cobra.Command) error {
	name := root.Name()
	return errors.Join(
		completion(filepath.Join(share, "bash-completion", "completions", name), func(w io.Writer) error {
			return root.GenBashCompletionV2(w, true)
		}),
		completion(filepath.Join(share, "zsh", "vendor-completions", "_"+name), root.GenZshCompletion),
		completion(filepath.Join(share, "fish", "vendor_completions.d", name+".fish"), func(w io.Writer) error {
			return root.GenFishCompletion(w, true)
		}))
}

func completion(path string, write func(io.Writer) error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
