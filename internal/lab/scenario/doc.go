// Package scenario is the description of a lab: hosts, virtual machines, physical switches, routers and the links
// between them, read strictly from one YAML file. It contains values only and does not use the kernel, so that the
// simulation shares it with the real lab.
//
//layout:floor=workshop pure
package scenario
