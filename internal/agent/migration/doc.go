// Package migration is the agent's part in moves of ports between hosts (S79, S100): a port follows its guest, standby
// on one host, active on the other, handed over at last. The part records how far each move has come, sends copies of
// what belongs to a port to the target, takes in those of the source, and raises a port's generation. Whether a port
// speaks is decided by its presence alone, from local facts. Only the agent's loop uses it, unless a method says
// otherwise.
//
//layout:floor=process
package migration
