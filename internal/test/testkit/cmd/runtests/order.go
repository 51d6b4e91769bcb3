package main

import (
	"fmt"
	"slices"
)

// everything is the pattern of all packages of the module.
const everything = "./..."

// longest are the packages that take more than a minute, the longest first. They are started first, so that none of
// them is left running alone at the end. The report says what each took.
var longest = []string{
	"./internal/test/kernels", "./internal/lab/qemu", "./internal/test/host", "./internal/agent/adopt/adopttest",
	"./internal/dataplane",
	"./internal/test/kerneltest", "./internal/test/smoke", "./internal/test/chaos",
	"./internal/model", "./internal/uplinks/linkproto",
	"./packaging",
}

// goTest is the command line of go. Tests of hosts and guests wait most of the time: with as many packages at once as
// there are CPUs, which is go's own choice, the CPUs are idle for nearly half of it.
func goTest(self string, cpus int, args []string) []string {
	line := []string{"test", "-json", "-p", fmt.Sprint(2 * cpus), "-exec", self + " " + measureVerb}
	if i := slices.Index(args, everything); i >= 0 {
		args = slices.Insert(slices.Clone(args), i, longest...) // go runs a package that is named twice once
	}
	return append(line, args...)
}
