// Command gen writes internal/flow/ipfix/elements_gen.go from the tables in internal/flow/ipfix/registry, so that no
// element is typed by hand.
//
//layout:floor=plans
package main
