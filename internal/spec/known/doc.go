// Package known helps when somebody gives a name that does not exist: it suggests the nearest existing one if there may
// be a typing error, and else lists what exists. It makes every message about a missing name.
//
//layout:floor=words pure
package known
