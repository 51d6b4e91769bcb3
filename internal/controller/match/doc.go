// Package match brings hosts together between which ports move. A port whose guest comes by a migration waits at the
// target, which offers to take over what belongs to the port. The controller that the target is connected to finds the
// host that the guest comes from, names each of the two to the other one, and has no further part in it: they speak
// with one another. Where the two are connected to different controllers, the target's tells the source's what the
// target offers, hears which hosts have the port there, and says which of them it has chosen.
//
//layout:floor=process
package match
