/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* A flow that this CPU does not have at a place nor in its table: it begins, in the room of the port whose frame it is, or is lost. */
#pragma once
#include "meter_place.h"

enum { ROOM_TRIES = 8 };

INLINE void copy_words(void *to, const void *from, u32 words)
{
	for (u32 i = 0; i < words; i++)
		((u32 *)to)[i] = ((const u32 *)from)[i];
}

/* Dry runs are one after the other, on whatever CPU: theirs are metered as one CPU's. */
INLINE struct meter_point *meter_point_at(u32 slot)
{
	if (recording)
		return bpf_map_lookup_percpu_elem(&meter_points, &slot, 0);
	return bpf_map_lookup_elem(&meter_points, &slot);
}

/* Takes room for one flow; the rooms of a round that is over are empty. */
INLINE bool take_from(struct flow_room *r, u64 round)
{
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < ROOM_TRIES; i++) {
		u64 word = *(volatile u64 *)&r->taken;
		u32 taken = word >> 32 == (u32)round ? (u32)word : 0;

		if (taken >= r->limit)
			return false;
		if (__sync_bool_compare_and_swap(&r->taken, word, round << 32 | (taken + 1)))
			return true;
	}
	return false; /* so many other CPUs took theirs meanwhile */
}

INLINE struct flow_room *room_at(u32 i)
{
	return bpf_map_lookup_elem(&flow_rooms, &i);
}

/* Room for a flow of origin's frames: its own, then what it shares. The room that was taken, or 0. */
INLINE struct flow_room *take_room(u32 origin, u64 round)
{
	struct flow_room *r = room_at(origin);

	if (!r)
		return 0;
	if (take_from(r, round))
		return r;
	if (!r->pool)
		return 0;
	r = room_at(r->pool);
	return r && take_from(r, round) ? r : 0;
}

INLINE bool find_shared(struct meter_scratch *s, void *shared)
{
	struct flow *v = bpf_map_lookup_elem(shared, &s->wide_key);

	if (v)
		add_shared(v, &s->fresh);
	return v;
}

INLINE bool insert_own(struct meter_scratch *s, u64 round)
{
	void *table;

	if (s->wide) {
		table = table_of_cpu(&wide_flows, round);
		return table && !bpf_map_update_elem(table, &s->wide_key, &s->fresh, UPDATE_NOEXIST);
	}
	NO_MERGE();
	table = table_of_cpu(&flows, round);
	return table && !bpf_map_update_elem(table, &s->key, &s->fresh, UPDATE_NOEXIST);
}

/* The key of an IPv4 flow for the table that all CPUs share. */
INLINE void widen(struct meter_scratch *s)
{
	struct wide_flow_key *w = &s->wide_key;

	__builtin_memset(w, 0, sizeof(*w));
	w->point = s->key.point;
	w->vlan = s->key.vlan;
	copy_words(w->macs, s->key.macs, 3);
	copy_words(w->addresses, s->key.addresses, 1);
	copy_words(w->addresses + 16, s->key.addresses + 4, 1);
	copy_words(w->ports, s->key.ports, 1);
	w->type = TYPE_IPV4;
	w->protocol = s->key.protocol;
}

INLINE u32 origin_of(const struct meter_ask *ask)
{
	return ask->way >> WAY_ORIGIN_SHIFT;
}

INLINE bool begin_in_table(struct meter_scratch *s, const struct meter_ask *ask)
{
	u64 *full = s->wide ? &s->full[1] : &s->full[0];
	u32 i = ask->round & 1;
	void *shared = bpf_map_lookup_elem(&shared_flows, &i);
	struct flow_room *room;

	if (!shared)
		return false;
	if (*full == ask->round) {
		if (!s->wide)
			widen(s);
		if (find_shared(s, shared))
			return true;
	}
	room = take_room(origin_of(ask), ask->round);
	if (!room)
		return false;
	if (*full != ask->round) {
		if (insert_own(s, ask->round))
			return true;
		*full = ask->round;
		if (!s->wide)
			widen(s);
	}
	if (!bpf_map_update_elem(shared, &s->wide_key, &s->fresh, UPDATE_NOEXIST))
		return true;
	__sync_fetch_and_add(&room->taken, -1);
	return find_shared(s, shared);
}

/* s->fresh has the next place, if there is still one that may be taken; *no_room: the flow may not begin at all. */
INLINE bool begin_at_place(struct meter_scratch *s, const struct meter_ask *ask, bool *no_room)
{
	struct flow_places *p = s->cell.none ? 0 : places_of_cpu(ask->round);
	u32 n;

	if (!p)
		return false;
	n = places_taken(p, ask->round);
	if (n > place_mask)
		return false;
	*no_room = !take_room(origin_of(ask), ask->round);
	if (*no_room)
		return false;
	p->used = ask->round << 32 | (n + 1);
	*cell_at(p, s->cell.at) = s->cell.mark | n;
	settle(place_at(p, n), s, ask->round);
	return true;
}

/* s->fresh, a flow that this CPU does not have, becomes one, or is added to one in the table that all share, or is lost. */
INLINE bool begin_flow(struct meter_scratch *s, const struct meter_ask *ask)
{
	bool no_room = false;

	return begin_at_place(s, ask, &no_room) || (!no_room && begin_in_table(s, ask));
}
