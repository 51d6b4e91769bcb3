// Package staticports makes the static ports of port groups what a change of the definition says: it refuses a change
// that has no place for ports that are bound, and has the work done that follows the change. It has the parts of the
// pipeline that do so.
//
//layout:floor=process
package staticports
