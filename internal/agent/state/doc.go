// Package state defines and stores what an agent remembers across restarts: the active configuration, what commands
// made, the devices in use and their original settings, and what was announced to the physical network. It is one file,
// written so that a crash leaves the old or the new one whole.
//
//layout:floor=process
package state
