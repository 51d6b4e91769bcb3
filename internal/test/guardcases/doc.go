// Package guardcases are frames that the guards of a port let pass or drop (S86, S87, S108): the model and the kernel
// program are each tested with them.
//
//layout:floor=top
package guardcases
