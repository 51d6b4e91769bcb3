// Package live reads the distributed switches of a running vCenter through govmomi, and writes them as the dump that
// package vsphere reads. It only reads: it logs in, collects properties in pages, and logs out.
//
//layout:floor=plans
package live
