// Package fleet is static ports at a controller: which are bound, the claims of hosts, what people see and do of them,
// and what a change of the definition means for them. It refuses a change that has no place for ports that are bound,
// and has the work done that follows the change.
//
//layout:floor=workshop
package fleet
