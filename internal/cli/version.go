package cli

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Version identifies a build: the module's version and the commit it was built from.
type Version struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Dirty   bool   `json:"dirty"`
	Go      string `json:"go"`
}

// buildVersion reads the record of the Go linker; a build outside a checkout has no commit.
func buildVersion() Version {
	v := Version{Version: "(devel)", Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.modified":
			v.Dirty = s.Value == "true"
		}
	}
	return v
}

func newVersion(d Deps) *cobra.Command {
	o := &output{}
	c := &cobra.Command{
		Use:     "version",
		Short:   "Show the program's version",
		Example: "  heddle version\n  heddle version -o json",
		Args:    exactly(),
		RunE: func(*cobra.Command, []string) error {
			if err := o.check(); err != nil {
				return err
			}
			v := buildVersion()
			return o.print(d, v, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "heddle %s %s\n", v.Version, v.Go)
				return err
			})
		},
	}
	o.flag(c)
	return c
}
