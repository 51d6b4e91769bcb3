package layout

import (
	"fmt"
	"strings"
)

// The folders of the two kinds of code that know each other by words alone: a capability of processes is one folder,
// internal/feature/<name>, with its part in the agent (host), in the controller (fleet) and its commands (cmd).
const (
	features = "internal/feature/"
	platform = "internal/platform"
)

// strange are the imports that no floor forbids, and that make two things one: of a feature's parts by another feature,
// of a feature by the cores or the platform, of the switch's words by the platform, of agent and controller by the
// processes beside them.
func (p *Package) strange() (out []string) {
	for _, i := range p.Imports {
		if why := p.mayNot(i); why != "" {
			out = append(out, fmt.Sprintf("%s imports %s: %s", p.Path, i, why))
		}
	}
	return out
}

// mayNot says why a package may not import another one, "" where it may.
func (p *Package) mayNot(i string) string {
	name, part := feature(i)
	own, _ := feature(p.Path)
	switch {
	case name != "" && (in(p.Path, "internal/agent") || in(p.Path, "internal/controller") || in(p.Path, platform)):
		return "the cores and the platform know no feature; a program lists the features that it has"
	case name != "" && own != "" && name != own && part != "":
		return "a feature knows another one by its words alone, which are in " + features + name
	case in(p.Path, platform) && (in(i, "internal/plan") || in(i, "internal/spec")):
		return "the platform knows hosts and documents, and no switch"
	case (in(p.Path, "internal/collector") || in(p.Path, "internal/web")) &&
		(in(i, "internal/agent") || in(i, "internal/controller")):
		return "a process of its own knows the others by their API"
	}
	return ""
}

// standsOn reports whether a package is made to import another one of its own floor: each part of a feature the room
// that it is added to, and tests and tools the lists of the features that programs have.
func (p *Package) standsOn(i string) bool {
	_, part := feature(p.Path)
	rooms := map[string]string{"host": "internal/agent", "fleet": "internal/controller", "cmd": "internal/cli"}
	part, _, _ = strings.Cut(part, "/")
	into, is := rooms[part]
	return is && in(i, into) || in(p.Path, "internal") && lists(i)
}

// lists reports whether a package lists the features of a program: cmd/NAME/features.
func lists(path string) bool {
	program, below, _ := strings.Cut(strings.TrimPrefix(path, "cmd/"), "/")
	return strings.HasPrefix(path, "cmd/") && program != "" && in(below, "features")
}

// feature is the name of the feature that a package belongs to, and the part of it below its words.
func feature(path string) (name, part string) {
	below, is := strings.CutPrefix(path, features)
	if !is {
		return "", ""
	}
	name, part, _ = strings.Cut(below, "/")
	return name, part
}

// in reports whether a package is in a folder.
func in(path, folder string) bool { return path == folder || strings.HasPrefix(path, folder+"/") }
