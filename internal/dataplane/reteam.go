package dataplane

import "heddle/internal/binding"

// Reteam puts in force what other facts of uplinks mean for the ports' teams, and nothing else: d has the plan, the ports and the
// devices of the last Change. It returns at the instant that they are in force, without waiting for what Change waits for; the
// next change of the tables does.
func (k *Kernel) Reteam(d binding.Desired) (Instant, error) {
	img, err := compile(d, k.slots, k.hz)
	if err != nil {
		return Instant{}, err
	}
	next, err := k.tables.write(img)
	if err != nil {
		return Instant{}, err
	}
	return k.tables.flip(next)
}
