package plan

import (
	"strings"

	"heddle/internal/spec/printable"
)

// Setting is a policy field and the value to set it to, in the form that Field.Parse reads.
type Setting struct{ Path, Value string }

// text is the value as YAML.
func (s Setting) text() string {
	f, known := FieldOf(s.Path)
	if known && f.Kind == KindList {
		return "[" + strings.ReplaceAll(s.Value, ",", ", ") + "]"
	}
	return s.Value
}

// Flag is the setting as "heddle port connect" takes it: --mac-limit 16.
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

// SettingsYAML is several settings in one line: security: {promiscuous: reject, macLearning: {enabled: true}}.
func SettingsYAML(settings ...Setting) string {
	paths := make([][]string, len(settings))
	for i, s := range settings {
		paths[i] = strings.Split(s.Path, ".")
	}
	return mapping(settings, paths)
}

// mapping is the settings below one place of the file; paths are what is left of theirs. Those of one part stand
// together.
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
