/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Ports of one owner that may use each other's MACs, as a bond in a guest does (frame-rules, "Siblings"): frames for
 * such a MAC go to the port that sent from it last. */
#pragma once
#include "core/macs.h"
#include "stage/classify.h"
#include "stage/wait.h"

/* The first of the ports with one MAC, in the order of their waits, whose guest runs here; 0 = none. */
NOINLINE u32 first_awake(u32 half, u32 slot)
{
	for (u32 i = 0; i < MAX_SAME_MAC && slot; i++) {
		struct port *p = port_at(half, slot);

		if (!p)
			return 0;
		if (!waits(slot, p))
			return slot;
		slot = p->next_owner;
	}
	return 0;
}

/* A MAC that one port used is now used by its sibling. */
INLINE void moved(u32 slot, u32 had, u32 segment, u64 mac, bool news)
{
	struct counters *count = counters_of(slot);

	if (count)
		count->mac_moves++;
	if (news)
		tell(slot, TELL_MOVED, had, segment, mac);
}

/* The port has sent from a MAC that is its own or may be a sibling's. If the last frame came by another port, a bond in
 * the guest has failed over (S111). whose: segment << 32 | slot of the MAC's first owner, 0 = nobody. A guest that
 * sends by several ports at once is not reported. */
SEPARATE u32 speak(u32 half, u32 slot, u64 whose, u64 mac, u64 now)
{
	struct port *p = port_at(half, slot), *o;
	u32 had, owner = first_awake(half, whose);
	struct speaker *s;
	u64 word, since;

	o = port_at(half, owner);
	s = bpf_map_lookup_elem(&speakers, &owner);
	if (!owner || !p || !o || !s || o->siblings != p->siblings)
		return 0;
	word = *(volatile u64 *)&s->word;
	had = of_mac(word, mac) ? word >> SPEAKER_SLOT_SHIFT : owner;
	if (had == slot)
		return 0;
	since = s->since;
	s->word = mac | (u64)slot << SPEAKER_SLOT_SHIFT;
	s->since = now;
	moved(slot, had, whose >> 32, mac, now - since >= ticks_per_second);
	return 1;
}

/* May the port use the MACs of the port at that slot? */
INLINE bool siblings(u32 half, const struct port *p, u32 slot)
{
	struct port *o;

	if (LIKELY(!(p->rules & RULE_SIBLINGS)))
		return false;
	o = port_at(half, slot);
	return o && o->siblings == p->siblings;
}

/* Can this sibling of the family receive frames of the segment? */
INLINE bool takes(u32 half, u32 slot, u32 family, u32 segment)
{
	struct port *p = port_at(half, slot);
	u32 need = PORT_CONNECTED | PORT_UP;

	return p && p->siblings == family && (p->flags & need) == need && !waits(slot, p) && admits(half, p, segment);
}

/* The port to which frames for a MAC go when its first owner has siblings, waits, or both; 0 = none. */
SEPARATE u32 owner_here(u32 half, u32 slot, u32 segment, u64 mac)
{
	struct speaker *s;
	struct port *o;
	u32 owner, speaks;
	u64 word;

	owner = first_awake(half, slot);
	o = port_at(half, owner);
	if (!owner || !o || !(o->rules & RULE_SIBLINGS))
		return owner;
	s = bpf_map_lookup_elem(&speakers, &owner);
	if (!s)
		return owner;
	word = *(volatile u64 *)&s->word;
	speaks = of_mac(word, mac) ? word >> SPEAKER_SLOT_SHIFT : 0;
	if (speaks && takes(half, speaks, o->siblings, segment))
		return speaks;
	slot = owner;
	for (u32 i = 0; i < MAX_SAME_MAC && slot; i++) {
		struct port *p = port_at(half, slot);

		if (!p)
			break;
		if (takes(half, slot, o->siblings, segment))
			return slot;
		slot = p->next_owner;
	}
	return owner;
}
