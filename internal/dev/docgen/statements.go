package docgen

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v4"
)

// statements is docs/reference/statements.yaml.
type statements struct {
	Statements []statement `yaml:"statements"`
	Decisions  []decision  `yaml:"decisions"`
}

// statement is one behaviour: S14.
type statement struct {
	Number  int    `yaml:"number"`
	Section string `yaml:"section"`
	Area    string `yaml:"area"`
	Text    string `yaml:"text"`
}

// decision is one of ours where Linux differs or the model we follow is silent: D8.
type decision struct {
	Number int    `yaml:"number"`
	Text   string `yaml:"text"`
}

// readStatements reads and checks the data file: numbered upwards, nothing empty.
func readStatements(root string) (*statements, error) {
	name := filepath.Join(root, "docs", "reference", "statements.yaml")
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var s statements
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(&s); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	last := 0 // a number is never given again, so that there may be gaps
	for i, st := range s.Statements {
		if st.Number <= last || st.Section == "" || st.Area == "" || st.Text == "" {
			return nil, fmt.Errorf("%s: statement %d at place %d: numbers go up and no field is empty", name, st.Number,
				i+1)
		}
		last = st.Number
	}
	last = 0
	for i, d := range s.Decisions {
		if d.Number <= last || d.Text == "" {
			return nil, fmt.Errorf("%s: decision %d at place %d: numbers go up and no field is empty", name, d.Number,
				i+1)
		}
		last = d.Number
	}
	return &s, nil
}
