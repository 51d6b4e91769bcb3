// Package inventory is the definition that a controller keeps in memory, and what of it each host is handed. It is
// pure: an Inventory does not change; a change of the definition makes another one.
//
//layout:floor=process pure
package inventory
