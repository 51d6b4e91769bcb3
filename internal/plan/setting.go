package plan

import (
	"strings"

	"heddle/internal/spec/printable"
)

// Setting is a policy field and the value to set it to, in the form that Field.Parse reads.
type Setting struct{ Path, Value string }

// text returns the value as YAML.
func (s Setting) text() string {
	f, known := FieldOf(s.Path)
	if known && f.Kind == KindList {
		return "[" + strings.ReplaceAll(s.Value, ",", ", ") + "]"
	}
	return s.Value
}

// Flag returns the setting as a flag of "heddle port connect": --mac-limit 16.
func (s Setting) Flag() string {
	f, known := FieldOf(s.Path)
	switch {
	case !known:
		return ""
	case f.Kind != KindTruth:
		return "--" + f.Flag + " " + printable.ShellWord(s.Value)
	case s.Value == "true":
		return "--" + f.Flag
	}
	return "--" + f.Flag + "=" + printable.ShellWord(s.Value)
}

// SettingsYAML returns several settings in one line: security: {promiscuous: reject, macLearning: {enabled: true}}.
func SettingsYAML(settings ...Setting) string {
	paths := make([][]string, len(settings))
	for i, s := range settings {
		paths[i] = strings.Split(s.Path, ".")
	}
	return mapping(settings, paths)
}

// mapping returns the settings below one point of the file; paths are the rest of their paths. Settings of one part are
// adjacent.
func mapping(settings []Setting, paths [][]string) string {
	var parts []string
	for i := 0; i < len(settings); {
		n := i + 1
		for n < len(settings) && len(paths[i]) > 1 && len(paths[n]) > 1 && paths[n][0] == paths[i][0] {
			n++
		}
		if len(paths[i]) == 1 {
			parts = append(parts, paths[i][0]+": "+settings[i].text())
		} else {
			inner := make([][]string, 0, n-i)
			for _, p := range paths[i:n] {
				inner = append(inner, p[1:])
			}
			parts = append(parts, paths[i][0]+": {"+mapping(settings[i:n], inner)+"}")
		}
		i = n
	}
	return strings.Join(parts, ", ")
}
