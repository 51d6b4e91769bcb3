// Package removal removes what an agent has put into the kernel and gives the host's devices back, for "heddle down"
// and for a first start that failed; and says before what that is.
//
//layout:floor=process
package removal
