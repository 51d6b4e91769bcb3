// Package locations is the agent's part in the overlay segments that controllers define: it has them told which MACs
// and addresses are behind this host's ports, and the kernel told where everything else is. Without controllers the
// host goes on by what it knew last, and by what the frames of other hosts show.
//
//layout:floor=process
package locations
