// Package rotation changes the root of a cluster step by step, and says for whom the next step comes too early.
//
//layout:floor=platform
package rotation
