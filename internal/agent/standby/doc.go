// Package standby has the ports whose guests run elsewhere (S99): the guest will arrive by migration, or has left by
// migration. Such a port waits: it is not announced, its MAC does not count as this host's, and no copy is delivered to
// it. The switch program ends a wait by itself at the port's first frame; the agent starts waits, and ends them when
// QEMU, libvirt or an operator says that the guest runs. Who is believed is decided by package presence.
//
//layout:floor=process
package standby
