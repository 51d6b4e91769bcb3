// Package explain explains a word of the outputs or of the configuration file: the reason of a drop, a field of the
// file, a rule of advise. It collects the descriptions in those packages.
//
//layout:floor=kernel
package explain
