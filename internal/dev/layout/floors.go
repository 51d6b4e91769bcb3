package layout

import (
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// Floor is how high a package stands: it imports packages of lower floors, and of its own room.
type Floor int

// The floors, from the words at the bottom to the program and its tests at the top.
const (
	Words Floor = iota
	Plans
	Kinds
	Answers
	Kernel
	Network
	Platform
	Process
	Workshop
	Verbs
	Top
)

// titles describe the floors.
func titles() [Top + 1]string {
	return [...]string{
		Words:    "types that import nothing else of Heddle: what the user asks for, what C and Go share",
		Plans:    "effective policies, and codecs that know no policies",
		Kinds:    "types for devices, flows and observations; access to this machine",
		Answers:  "what a switch does, in plain Go, and the words in which it is reported",
		Kernel:   "the switch in the kernel, the explanation of what it does, and metering",
		Network:  "the conversation with the physical network",
		Platform: "a cluster's store, certificates, access and audit log; it knows no switch",
		Process:  "one host's agent and what attaches guests to it; the controller",
		Workshop: "labs and measurements, and the check of a whole host",
		Verbs:    "the command line",
		Top:      "the program, its tests, and the tools of its development",
	}
}

// names are the floors as packages write them.
func names() [Top + 1]string {
	return [...]string{Words: "words", Plans: "plans", Kinds: "kinds", Answers: "answers", Kernel: "kernel",
		Network: "network", Platform: "platform", Process: "process", Workshop: "workshop", Verbs: "verbs", Top: "top"}
}

// directive is the line of a package's doc.go that says its floor, and whether it is pure, as in
// "//layout:floor=plans pure". Each package has its own, so that two branches that add packages edit no common table.
const directive = "//layout:floor="

// Rule is what holds for one package.
type Rule struct {
	Floor Floor
	// Pure packages reach neither the kernel, nor netlink, nor the network, also not through what they import, and
	// build on any system.
	Pure bool
}

// declared reads the rule of the package in a directory; nil where its doc.go has none.
func declared(dir string) (*Rule, error) {
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, "doc.go"), nil,
		parser.ParseComments|parser.PackageClauseOnly)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, group := range file.Comments {
		for _, line := range group.List {
			if said, is := strings.CutPrefix(line.Text, directive); is {
				return parseRule(said)
			}
		}
	}
	return nil, nil
}

// parseRule reads what stands behind the directive: the name of a floor, and "pure" or nothing.
func parseRule(said string) (*Rule, error) {
	name, more, _ := strings.Cut(said, " ")
	all := names()
	floor := slices.Index(all[:], name)
	if floor < 0 || more != "" && more != "pure" {
		return nil, fmt.Errorf("%s%s: want one of %s, and pure or nothing", directive, said,
			strings.Join(all[:], ", "))
	}
	return &Rule{Floor: Floor(floor), Pure: more == "pure"}, nil
}
