// Package entries copies the entries of kernel tables, in few system calls, and writes copies into other tables.
//
//layout:floor=kernel
package entries
