package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"heddle/internal/lab/report"
	"heddle/internal/lab/report/page"
)

// ReportFile is the --report flag of commands that publish numbers.
type ReportFile struct {
	path    string
	Command string
	File    *page.File // nil: no report is requested
}

func (f *ReportFile) Flag(c *cobra.Command) {
	c.Flags().StringVar(&f.path, "report", "", "also write the report as one self-contained HTML `file`, with plots")
	_ = c.MarkFlagFilename("report", "html")
}

// Check returns an error if the report cannot be written, before anything is measured.
func (f *ReportFile) Check(c *cobra.Command, args []string) error {
	if !c.Flags().Changed("report") {
		return nil
	}
	file, err := page.Check(f.path)
	if err != nil {
		return &UsageError{Err: err}
	}
	f.File, f.Command = file, commandLine(c, args)
	return nil
}

// Write writes the report if one is requested.
func (f *ReportFile) Write(r *report.Report) error {
	if f.File == nil {
		return nil
	}
	return f.File.Write(r, f.Command)
}

// commandLine returns the command that repeats the measurement.
func commandLine(c *cobra.Command, args []string) string {
	words := append([]string{c.CommandPath()}, args...)
	c.Flags().Visit(func(f *pflag.Flag) {
		switch f.Name {
		case "report", "output", "run-dir":
			return
		}
		if f.Value.Type() == "bool" && f.Value.String() == "true" {
			words = append(words, "--"+f.Name)
			return
		}
		words = append(words, "--"+f.Name+"="+strings.Trim(f.Value.String(), "[]"))
	})
	return strings.Join(words, " ")
}
