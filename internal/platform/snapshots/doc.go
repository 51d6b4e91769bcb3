// Package snapshots takes snapshots of a controller's state by a schedule, and removes those that had their time. Each
// is two files of one name: the whole database (.db), by which a lost cluster is brought back, and a backup of what is
// defined (.yaml), which people read and compare.
//
//layout:floor=platform
package snapshots
