package explain

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"heddle/internal/diagnose/advise"
	"heddle/internal/diagnose/reasons"
	"heddle/internal/diagnose/trace"
	"heddle/internal/plan"
)

// reasonTopics returns the counted reasons in the order of their numbers, then those that only a trace uses.
func reasonTopics() (list []Topic) {
	for _, r := range reasons.Reasons() {
		list = append(list, Topic{Kind: Reason, Name: r.Name(), Meaning: r.Meaning, About: about(r.About),
			Policy: r.Policy, Counted: counted(&r), Fix: r.Change, Command: r.Command, Statements: r.Statements})
	}
	uncounted := trace.Uncounted()
	for _, name := range slices.Sorted(maps.Keys(uncounted)) {
		list = append(list, Topic{Kind: Reason, Name: name, Meaning: uncounted[name],
			About: "the copy of the port asked about", Counted: "nowhere: only heddle trace says it",
			Fix: "The trace says it, with the names of the two ports.", Command: "heddle trace FROM TO"})
	}
	return list
}

func about(a reasons.About) string {
	switch a {
	case reasons.Frame:
		return "the whole frame: nobody gets it"
	case reasons.Copy:
		return "one receiver's copy: others may get theirs"
	}
	return "at the port it came in by the whole frame, at a receiver its copy"
}

// counted returns where a reason is counted.
func counted(r *reasons.Reason) string {
	out := "OUT DROPS of the receiver"
	if reasons.ByDesign(r.Reason, false) {
		out = "FILTERED of the receiver, and as no drop"
	}
	const where = ": heddle stats PORT; as it happens: heddle capture any --reason "
	switch r.About {
	case reasons.Frame:
		return "IN DROPS of the port it came in by" + where + r.Name()
	case reasons.Copy:
		return out + where + r.Name()
	}
	return "IN DROPS of the port it came in by, " + out + where + r.Name()
}

// policyTopics returns the fields that switches, port groups and ports have.
func policyTopics() (list []Topic) {
	for _, f := range plan.Fields() {
		t := Topic{Kind: Field, Name: f.Path, Meaning: f.Meaning, Values: plain(f.Values),
			Default: plain(f.Default),
			SetAt:   levels(&f), Flag: "--" + f.Flag, Example: example(&f), VSphere: f.VSphere,
			Command: "heddle port show PORT --policy"}
		if f.Kind == plan.KindVLAN {
			t.Flag = "--vlan, or --trunk and --qinq"
		}
		for _, r := range f.Reasons {
			t.Causes = append(t.Causes, r.String())
		}
		list = append(list, t)
	}
	return list
}

// levels returns where a policy field can be set, the level with the highest precedence last.
func levels(f *plan.Field) (list []string) {
	if f.PortOnly() {
		return []string{"port"}
	}
	list = []string{"switch, under defaults", "port group",
		"port, if the port group's overrides." + f.Category() + " is true"}
	if f.OfUplinks {
		list = append(list, "uplink, which inherits nothing")
	}
	return list
}

// example returns the field in the form of the file, with a value that is not the default.
func example(f *plan.Field) string {
	value := map[plan.Kind]string{plan.KindNumber: "100", plan.KindDuration: "500ms"}[f.Kind]
	switch words := f.Words(); {
	case f.Kind == plan.KindVLAN:
		return "vlan: {access: 10}"
	case f.Path == "security.addressGuard.addresses":
		value = "192.0.2.10,2001:db8::10"
	case strings.HasSuffix(f.Path, ".ageing"):
		value = "5m"
	case f.Kind == plan.KindList && len(words) == 0:
		value = "uplink1"
	case len(words) > 0:
		value = words[0]
		for _, w := range words {
			if w != strings.Trim(firstWord(f.Default), "`,") {
				value = w
				break
			}
		}
	}
	return plan.SettingsYAML(plan.Setting{Path: f.Path, Value: value})
}

func firstWord(s string) string {
	first, _, _ := strings.Cut(s, " ")
	return first
}

// link is a link of a page, in Markdown.
var link = regexp.MustCompile(`\[([^\]]+)\]\(([^)]*)\)`)

// plain returns a cell of a page as a terminal shows it: links name the page, and code is not marked.
func plain(cell string) string {
	text := link.ReplaceAllStringFunc(cell, func(l string) string {
		m := link.FindStringSubmatch(l)
		page, _, _ := strings.Cut(m[2], "#")
		switch {
		case page == "":
			return m[1]
		case m[1] == "how-to":
			return path.Join("docs/reference", page)
		}
		return fmt.Sprintf("%s (%s)", m[1], path.Join("docs/reference", page))
	})
	return strings.ReplaceAll(text, "`", "")
}

// ruleTopics returns the rules of advise.
func ruleTopics() (list []Topic) {
	for _, r := range advise.Rules() {
		list = append(list, Topic{Kind: Rule, Name: r.ID, Meaning: sentence(r.About), Level: string(r.Level),
			Sign: plain(r.Sign), Consequence: plain(r.Why), Fix: r.Fix, Command: "heddle advise"})
	}
	return list
}

// sentence turns a part of a sentence into a sentence.
func sentence(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:] + "."
}
