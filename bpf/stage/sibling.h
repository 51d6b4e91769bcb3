/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Ports of one owner that may use each other's MACs, as a bond in a guest has them do (frame-rules, "Siblings"): frames for such a MAC go
 * where it was heard from last. */
#pragma once
#include "stage/classify.h"
#include "stage/wait.h"

enum speaker_bits { SPEAKER_SLOT_SHIFT = 48, SPEAKS_OFTEN = 1 << 16 };

/* Who sent last from a MAC that a port owns. */
struct speaker {
	u64 word; /* slot << SPEAKER_SLOT_SHIFT | MAC; 0 = the owner itself */
	u64 since; /* ticks; when that began */
};

/* By the slot of the MAC's owner. */
struct {
	MAP_UINT(type, MAP_ARRAY);
	MAP_UINT(max_entries, MAX_PORTS);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct speaker);
} speakers SEC(".maps");

/* Of the ports that have one MAC, in the order of their waits, the first whose guest runs here; 0 = none. */
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

/* The port has sent from a MAC whose first owner that is. Returns the slot that sent from it before, with SPEAKS_OFTEN where that had
 * begun less than a second ago; 0 = the same port, or no sibling's MAC. */
NOINLINE u32 speak(u32 half, u32 slot, u32 owner, u64 mac, u64 now)
{
	struct port *p = port_at(half, slot), *o;
	struct speaker *s;
	u64 word, since;
	u32 had;

	owner = first_awake(half, owner);
	o = port_at(half, owner);
	s = bpf_map_lookup_elem(&speakers, &owner);
	if (!owner || !p || !o || !s || o->siblings != p->siblings)
		return 0;
	word = *(volatile u64 *)&s->word;
	had = word << 16 == mac << 16 ? word >> SPEAKER_SLOT_SHIFT : owner;
	if (had == slot)
		return 0;
	since = s->since;
	s->word = mac | (u64)slot << SPEAKER_SLOT_SHIFT;
	s->since = now;
	return had | (now - since < ticks_per_second ? SPEAKS_OFTEN : 0);
}

/* May the port use the MACs of the one at that slot? */
INLINE bool siblings(u32 half, const struct port *p, u32 slot)
{
	struct port *o;

	if (LIKELY(!(p->rules & RULE_SIBLINGS)))
		return false;
	o = port_at(half, slot);
	return o && o->siblings == p->siblings;
}

/* Can a sibling of that family take frames of the segment? */
INLINE bool takes(u32 half, u32 slot, u32 family, u32 segment)
{
	struct port *p = port_at(half, slot);
	u32 need = PORT_CONNECTED | PORT_UP;

	return p && p->siblings == family && (p->flags & need) == need && !waits(slot, p) && admits(half, p, segment);
}

/* The port that frames for a MAC go to, where its first owner has siblings, waits, or both; 0 = none. */
NOINLINE u32 owner_here(u32 half, u32 slot, u32 segment, u64 mac)
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
	speaks = word << 16 == mac << 16 ? word >> SPEAKER_SLOT_SHIFT : 0;
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
