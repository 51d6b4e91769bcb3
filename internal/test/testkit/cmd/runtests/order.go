package main

import (
	"cmp"
	"slices"
)

// everything is the pattern of all packages of the module.
const everything = "./..."

// longest are the packages that take about a minute or more, the longest first. They are started first, so that none of
// them is left running alone at the end. The report says what each took.
var longest = []string{
	"./internal/test/kernels", "./internal/test/fleet", "./internal/test/host", "./internal/lab/qemu",
	"./internal/agent/adopt/adopttest", "./packaging", "./internal/test/chaos",
	"./internal/test/kerneltest", "./internal/dataplane",
	"./internal/controller/rpc", "./internal/lab/bench", "./internal/lab/bench/controlplane",
	"./internal/model", "./internal/uplinks/linkproto", "./internal/test/smoke", "./internal/lab/run",
	"./internal/agent", "./internal/test/difftest", "./internal/lab/bench/flowexport", "./internal/cli",
}

// longPackages are those that `make test` leaves to `make test-all` as a whole: guests with other kernels, guests under
// QEMU, packages in systemd roots, kills and cuts.
var longPackages = []string{
	"./internal/test/kernels", "./internal/lab/qemu", "./packaging", "./internal/test/chaos",
}

// neverPackages prove that something never happens: one failure there is a fault, and no test of them is repeated.
var neverPackages = []string{
	"./internal/test/difftest", "./internal/test/kerneltest", "./internal/test/chaos", "./internal/test/testkit/leaks",
}

// inOrder puts the longest packages first.
func inOrder(programs []program) {
	place := func(p program) int {
		i := slices.IndexFunc(longest, func(l string) bool { return ofPackage(p.dir, l) })
		if i < 0 {
			return len(longest)
		}
		return i
	}
	slices.SortStableFunc(programs, func(a, b program) int {
		return cmp.Or(place(a)-place(b), cmp.Compare(a.pkg, b.pkg))
	})
}
