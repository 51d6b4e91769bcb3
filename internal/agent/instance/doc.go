// Package instance is one agent's part of a machine: its directories, the lock that excludes a second agent, the file
// system of its pins, and the network namespace of its devices.
//
//layout:floor=process
package instance
