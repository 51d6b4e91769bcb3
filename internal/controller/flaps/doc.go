// Package flaps finds the MACs that go to and fro between hosts, from what each host has learned more than once. Pure.
//
//layout:floor=process pure
package flaps
