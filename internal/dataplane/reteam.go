package dataplane

import (
	"heddle/internal/binding"
	"heddle/internal/dataplane/compile"
)

// Reteam activates the effect of changed facts of uplinks on the ports' teams, and nothing else: d must have the plan,
// the ports and the devices of the last Change. It returns as soon as the teams are active, without the grace period of
// Change; the next change of the tables waits for it instead.
func (k *Kernel) Reteam(d binding.Desired) (Instant, error) {
	img, err := compile.Tables(d, k.slots, k.hz)
	if err != nil {
		return Instant{}, err
	}
	next, err := k.tables.write(img)
	if err != nil {
		return Instant{}, err
	}
	at, err := k.tables.flip(next)
	k.tables.beginGrace() // a port whose guest stops soon after another change must not wait for it
	return at, err
}
