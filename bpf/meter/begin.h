/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Begins a flow that this CPU has neither in a fast slot nor in its table. It takes from the quota of the port whose
 * frame it is; when that is used up, the flow is lost. */
#pragma once
#include "meter/place.h"

enum room_limits {
	ROOM_TRIES = 8,
	ROOM_MOST = 16, /* quota of flows that a CPU reserves at once */
	ROOM_SHARE = 8, /* all CPUs together reserve at most 1/8 of the quota without using it */
};

INLINE void copy_words(void *to, const void *from, u32 words)
{
	for (u32 i = 0; i < words; i++)
		((u32 *)to)[i] = ((const u32 *)from)[i];
}

/* Dry runs follow one another, on whatever CPU: they are metered as if by one CPU. */
INLINE struct meter_point *meter_point_at(u32 slot)
{
	if (recording)
		return bpf_map_lookup_percpu_elem(&meter_points, &slot, 0);
	return bpf_map_lookup_elem(&meter_points, &slot);
}

/* Reserves quota for flows that this CPU is about to begin, for several at once while much is free, because all CPUs
 * write the same word. Returns the number of flows. A quota of an earlier round counts as unused. */
INLINE u32 take_from(struct flow_room *r, u64 round)
{
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < ROOM_TRIES; i++) {
		u64 word = *(volatile u64 *)&r->taken;
		u32 taken = is_of_round(word, round) ? (u32)word : 0, limit = r->limit, n;

		if (taken >= limit)
			return 0;
		n = (limit - taken) / (ROOM_SHARE * meter_cpus);
		n = n < 1 ? 1 : n > ROOM_MOST ? ROOM_MOST : n;
		if (__sync_bool_compare_and_swap(&r->taken, word, round << 32 | (taken + n)))
			return n;
	}
	return 0; /* the loop ends after as many collisions with other CPUs */
}

INLINE struct flow_room *room_at(u32 i)
{
	return bpf_map_lookup_elem(&flow_rooms, &i);
}

INLINE u32 origin_of(const struct meter_ask *ask)
{
	return ask->way >> WAY_ORIGIN_SHIFT;
}

/* Finds quota for a flow of a port's frames: first what this CPU has reserved and not used, then the port's own quota,
 * then the shared one. It keeps little on the stack. */
INLINE bool take_room(const struct meter_ask *ask)
{
	struct meter_point *p = meter_point_at(origin_of(ask));
	struct flow_room *r;
	u32 n;

	if (p && is_of_round(p->room, ask->round) && (u32)p->room) {
		p->room--;
		return true;
	}
	REREAD();
	r = room_at(origin_of(ask));
	if (!r)
		return false;
	n = take_from(r, ask->round);
	if (!n && r->pool) {
		r = room_at(r->pool);
		n = r ? take_from(r, ask->round) : 0;
	}
	REREAD();
	p = meter_point_at(origin_of(ask));
	if (!n || !p)
		return false;
	p->room = ask->round << 32 | (n - 1);
	return true;
}

/* Returns the quota that was taken last, because the flow did not begin. */
INLINE void keep_room(const struct meter_ask *ask)
{
	struct meter_point *p = meter_point_at(origin_of(ask));

	if (p)
		p->room++;
}

INLINE bool find_shared(struct meter_scratch *s, void *shared)
{
	struct flow *v = bpf_map_lookup_elem(shared, &s->taken.wide_key);

	if (v)
		add_shared(v, &s->fresh);
	return v;
}

INLINE bool insert_own(struct meter_scratch *s, u64 round)
{
	void *table;

	if (s->taken.wide) {
		table = table_of_cpu(&wide_flows, round);
		return table && !bpf_map_update_elem(table, &s->taken.wide_key, &s->fresh, UPDATE_NOEXIST);
	}
	NO_MERGE();
	table = table_of_cpu(&flows, round);
	return table && !bpf_map_update_elem(table, &s->taken.key, &s->fresh, UPDATE_NOEXIST);
}

/* The key of an IPv4 flow for the table that all CPUs share. */
INLINE void widen(struct meter_scratch *s)
{
	struct wide_flow_key *w = &s->taken.wide_key;

	__builtin_memset(w, 0, sizeof(*w));
	w->point = s->taken.key.point;
	w->vlan = s->taken.key.vlan;
	copy_words(w->macs, s->taken.key.macs, 3);
	copy_words(w->addresses, s->taken.key.addresses, 1);
	copy_words(w->addresses + 16, s->taken.key.addresses + 4, 1);
	copy_words(w->ports, s->taken.key.ports, 1);
	w->type = TYPE_IPV4;
	w->protocol = s->taken.key.protocol;
}

/* The round in which this CPU's table for flows of this kind was full. */
INLINE u64 *full_of(struct meter_scratch *s)
{
	REREAD(); /* not kept on the stack */
	return s->taken.wide ? &s->full[1] : &s->full[0];
}

INLINE bool begin_in_table(struct meter_scratch *s, const struct meter_ask *ask)
{
	u32 i = ask->round & 1;
	void *shared = bpf_map_lookup_elem(&shared_flows, &i);

	if (!shared)
		return false;
	if (*full_of(s) == ask->round) {
		if (!s->taken.wide)
			widen(s);
		if (find_shared(s, shared))
			return true;
	}
	if (!take_room(ask))
		return false;
	if (*full_of(s) != ask->round) {
		if (insert_own(s, ask->round))
			return true;
		*full_of(s) = ask->round;
		if (!s->taken.wide)
			widen(s);
	}
	if (!bpf_map_update_elem(shared, &s->taken.wide_key, &s->fresh, UPDATE_NOEXIST))
		return true;
	keep_room(ask);
	return find_shared(s, shared);
}

/* s->fresh is a flow that this CPU does not have. It gets the next fast slot, or an entry in this CPU's table; or it is
 * added to the table that all CPUs share, or is lost. */
INLINE bool begin_flow(struct meter_scratch *s, const struct meter_ask *ask)
{
	struct flow_places *p = s->cell.none ? 0 : places_of_cpu(ask->round);
	u32 n;

	if (!p || places_taken(p, ask->round) > place_mask)
		return begin_in_table(s, ask);
	if (!take_room(ask))
		return false;
	REREAD();
	n = places_taken(p, ask->round);
	p->used = ask->round << 32 | (n + 1);
	*cell_at(p, s->cell.at) = s->cell.mark | n;
	settle(place_at(p, n), s, ask->round);
	return true;
}
