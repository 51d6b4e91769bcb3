package quick

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// Package is a package of the module.
type Package struct {
	Dir     string   // below the module's root, "." for the root
	Imports []string // directories of packages of the module that it or its tests import
	Tests   bool     // it has tests
}

// always are the packages whose tests look at all the others.
func always() []string { return []string{"internal/dev/layout", "internal/dev/docgen"} }

// heavy are the folders whose tests run real parts for minutes: only a change of theirs has them run.
func heavy() []string {
	return []string{"internal/test", "internal/lab", "internal/agent/adopt/adopttest", "packaging"}
}

// sources are the folders that are no packages, and the packages that are made from what is in them.
func sources() map[string][]string {
	return map[string][]string{
		"bpf":  {"internal/abi", "internal/dataplane", "internal/test/kerneltest"},
		"docs": {"internal/dev/docgen", "internal/dev/layout"},
	}
}

// Choose gives the directories of the packages whose tests a change of some files can break: those that changed, those
// that look at everything, and the others by how many imports lie between.
func Choose(all []Package, files []string) []string {
	known := map[string]Package{}
	importers := map[string][]string{}
	for _, p := range all {
		known[p.Dir] = p
		for _, i := range p.Imports {
			importers[i] = append(importers[i], p.Dir)
		}
	}
	distance := map[string]int{}
	var queue []string
	for _, f := range files {
		for _, dir := range packagesOf(f, known) {
			if _, seen := distance[dir]; !seen {
				distance[dir], queue = 0, append(queue, dir)
			}
		}
	}
	changed := slices.Clone(queue)
	for len(queue) > 0 {
		dir := queue[0]
		queue = queue[1:]
		for _, i := range importers[dir] {
			if _, seen := distance[i]; !seen {
				distance[i], queue = distance[dir]+1, append(queue, i)
			}
		}
	}
	if len(files) > 0 {
		for _, dir := range always() {
			distance[dir] = 0
		}
	}
	var chosen []string
	for dir := range distance {
		if known[dir].Tests && (slices.Contains(changed, dir) || !isHeavy(dir)) {
			chosen = append(chosen, dir)
		}
	}
	slices.SortFunc(chosen, func(a, b string) int { return cmp.Or(distance[a]-distance[b], cmp.Compare(a, b)) })
	return chosen
}

// packagesOf are the packages that a file belongs to: that of the nearest directory above it, or those that are made
// from it.
func packagesOf(file string, known map[string]Package) []string {
	top, _, _ := strings.Cut(file, "/")
	if made, is := sources()[top]; is {
		return made
	}
	for dir := path.Dir(file); ; dir = path.Dir(dir) {
		if _, is := known[dir]; is {
			return []string{dir}
		}
		if dir == "." || dir == "/" {
			return nil
		}
	}
}

func isHeavy(dir string) bool {
	return slices.ContainsFunc(heavy(), func(h string) bool { return dir == h || strings.HasPrefix(dir, h+"/") })
}
