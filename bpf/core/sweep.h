/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Removes entries that no look-up would use any more (frame-rules §3). Runs when the agent asks; look-ups never depend
 * on it (D5). */
#pragma once
#include "core/forget.h"

struct sweep {
	u64 now;
	u32 half;
	u32 removed;
};

INLINE bool alive(const struct sweep *s, const struct mac_key *k, const struct learned *e)
{
	struct port *p = port_at(s->half, e->slot);
	u32 need = PORT_CONNECTED | PORT_LEARNS;

	return p && (p->flags & need) == need && admits(s->half, p, k->segment) &&
	       elapsed(s->now, e->seen) <= p->ageing;
}

static s64 sweep_mac(void *map, struct mac_key *key, struct learned *e, struct sweep *s)
{
	struct mac_key k = *key;

	if (!alive(s, &k, e) && forget(&k, e, s->now))
		s->removed++;
	return 0;
}

/* After a change, a port may no longer be allowed to speak for another, or the other may no longer own the MAC. If that one
 * ever owns it again, then because its adapter uses it now: who sent from the MAC before is of no account. */
static s64 sweep_speaker(void *map, u32 *slot, struct speaker *e, struct sweep *s)
{
	u32 speaks = e->word >> SPEAKER_SLOT_SHIFT;
	struct port *o = port_at(s->half, *slot), *p = port_at(s->half, speaks);

	if (speaks && !(o && p && o->siblings && o->siblings == p->siblings && of_mac(e->word, mac_number(o->mac))))
		e->word = 0;
	return 0;
}

/* A port would not find the mark of a MAC that it no longer owns: such a mark moves to the common table. */
static s64 sweep_own_mark(void *map, u32 *slot, struct own_mark *m, struct sweep *s)
{
	struct port *p = port_at(s->half, *slot);

	if (!m->key.segment || (p && p->flags & PORT_CONNECTED && mac_equal(p->mac, m->key.mac)))
		return 0;
	if (recent(s->now, m->at)) {
		struct mac_key k = m->key;

		keep_mark(&k, m->at);
	}
	m->key.segment = 0;
	return 0;
}
