// Package chaos is a fleet of real processes whose controllers, agents and members of etcd are killed and cut off at
// random while its definition and its static ports change under traffic. What is asked of the controllers, and what
// they answer, is a history that is checked for linearizability. What happens when follows from a seed.
//
//layout:floor=top
package chaos
