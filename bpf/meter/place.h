/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The fast slots of a CPU ("places" in the code), in which a flow is counted without a call of the kernel's hash. Flows
 * take them one after the other, so that flows that begin write memory in sequence. An index of cells says which slot a
 * flow has: the flow's key selects a bucket of cells and the cell to begin with, and the flow takes the first free one.
 * Within a round no cell becomes free: a flow that meets a free cell has no slot, and is not in the CPU's table either
 * unless all slots are taken.
 *
 * A flow that finds no cell or no slot is in the table. It takes over a slot when a set number of its frames, or of
 * others like it, have come while none came of the flow in the slot; that one then goes on in the table. So flows with
 * most of the traffic end up in slots, and in one round a flow may be in its slot and in the table, each with a part of
 * its counts. */
#pragma once
#include "meter/tables.h"
#include "core/record.h"

enum key_words {
	KEY_WORDS = sizeof(struct flow_key) / 8,
	WIDE_KEY_WORDS = sizeof(struct wide_flow_key) / 8,
};

enum place_cells {
	CELL_ROUND_SHIFT = 20,
	CELL_ROUND = 0x7ff,
	CELL_TAKEN = 0x800, /* beside the bits of the round */
	CELL_HASH_SHIFT = 15,
	CELL_HASH = 31, /* distinguishes most flows without reading the slot */
};

/* Finds out the round, and the limits of its fast slots. */
INLINE void meter_round(struct meter_ask *ask)
{
	u32 zero = 0;
	struct meter_control *c = bpf_map_lookup_elem(&meter_control, &zero);

	/* one round for the whole request: when the next one has begun, the agent reads the tables of this one after a
	 * grace period */
	ask->round = c ? *(volatile u64 *)&c->round : 0;
	ask->places = c ? c->places[ask->round & 1] : 0;
}

INLINE void *table_of_cpu(void *tables, u64 round)
{
	u32 i = (round & 1) * meter_cpus + (recording ? 0 : bpf_get_smp_processor_id());

	return bpf_map_lookup_elem(tables, &i);
}

/* This CPU's fast slots, 0 = none. */
INLINE struct flow_places *places_of_cpu(u64 round)
{
	void *table = table_of_cpu(&flow_places, round);
	u32 zero = 0;

	return table ? bpf_map_lookup_elem(table, &zero) : 0;
}

/* The same; also 0 if they must not be used. */
INLINE struct flow_places *open_places_of_cpu(const struct meter_ask *ask)
{
	return ask->places >> PLACES_LAYOUT_SHIFT == places_layout ? places_of_cpu(ask->round) : 0;
}

/* The first word of a key differs between the points of a frame; the other three of an IPv4 flow do not. */
INLINE u64 hash_of_point(u64 word)
{
	return word * 0x9e3779b97f4a7c15;
}

INLINE u64 hash_of_frame(const u64 *key)
{
	return key[1] * 0xbf58476d1ce4e5b9 + key[2] * 0x94d049bb133111eb + key[3] * 0xd6e8feb86659fd93;
}

INLINE u64 mixed(u64 h)
{
	return (h ^ h >> 32) * 0x9e3779b97f4a7c15;
}

/* Each word is multiplied by an odd number of its own, and the sum is mixed: flows that differ in few bits, such as
 * those of neighbouring addresses, spread as if at random. Whoever chooses flows that all select one bucket only makes
 * all but a few of them be counted in the table, where all flows would be without fast slots. */
INLINE u64 hash_of(const u64 *key, u32 words)
{
	u64 h = hash_of_point(key[0]) + hash_of_frame(key);

	if (words == WIDE_KEY_WORDS)
		h += key[4] * 0xc2b2ae3d27d4eb4f + key[5] * 0xff51afd7ed558ccd + key[6] * 0xc4ceb9fe1a85ec53;
	return mixed(h);
}

/* The first of the cells that a flow may have, by the flow's hash. */
INLINE u32 first_cell(u64 h, u64 places)
{
	return (h >> (64 - FLOW_PLACES_BITS) & (place_cells - 1)) >> (places & PLACES_SHIFTS);
}

INLINE u64 tag_of(const struct meter_scratch *s, u64 round)
{
	return round << 1 | (s->taken.wide ? 1 : 0);
}

INLINE bool is_of_round(u64 word, u64 round)
{
	return word >> 32 == (u32)round;
}

/* The first part of a cell in this round. */
INLINE u32 cell_round(u64 round)
{
	return (round & CELL_ROUND) | CELL_TAKEN;
}

/* The content of a cell, without the slot's number. */
INLINE u32 cell_mark(u64 h, u64 round)
{
	return cell_round(round) << CELL_ROUND_SHIFT | (h & CELL_HASH) << CELL_HASH_SHIFT;
}

/* The i-th cell, counted from 0, that a flow may have. */
INLINE u32 cell_after(u32 first, u32 i)
{
	return (first & ~(BUCKET - 1)) | ((first + i) & (BUCKET - 1));
}

INLINE u32 *cell_at(struct flow_places *p, u32 i)
{
	return (u32 *)p->words + (i & (place_cells - 1));
}

INLINE struct flow_place *place_at(struct flow_places *p, u32 cell)
{
	return (struct flow_place *)&p->words[place_cells / 2 + (cell & place_mask) * PLACE_WORDS];
}

/* How many fast slots are taken. */
INLINE u32 places_taken(const struct flow_places *p, u64 round)
{
	u64 used = p->used;

	return is_of_round(used, round) ? (u32)used : 0;
}

INLINE bool holds(const struct flow_place *at, const u64 *key, u32 words, u64 tag)
{
	const u64 *held = (const u64 *)&at->key;

	if (at->tag != tag)
		return false;
	for (u32 i = 0; i < words; i++)
		if (held[i] != key[i])
			return false;
	return true;
}

INLINE void copy_longs(void *to, const void *from, u32 longs)
{
	for (u32 i = 0; i < longs; i++)
		((u64 *)to)[i] = ((const u64 *)from)[i];
}

/* The fast slot of the key. 0 = none: s->cell then names the cell where it may begin. The state for each cell is stored
 * there, because the stack is small. */
INLINE struct flow_place *find_place(struct flow_places *p, const struct meter_ask *ask, struct meter_scratch *s,
				     const u64 *key, u32 words, u32 wide)
{
	u64 h = hash_of(key, words);
	struct flow_place *at;
	u32 cell;

	s->cell.at = first_cell(h, ask->places);
	s->cell.mark = cell_mark(h, ask->round);
	for (u32 i = 0; i < BUCKET; i++) {
		REREAD();
		cell = *cell_at(p, cell_after(s->cell.at, i));
		if (LIKELY(cell >> CELL_HASH_SHIFT == s->cell.mark >> CELL_HASH_SHIFT)) {
			at = place_at(p, cell);
			REREAD(); /* keeping the key's words in registers would need stack that is not left */
			if (LIKELY(holds(at, key, words, ask->round << 1 | wide)))
				return at;
		} else if (cell >> CELL_ROUND_SHIFT != s->cell.mark >> CELL_ROUND_SHIFT) {
			s->cell.at = cell_after(s->cell.at, i);
			s->cell.none = places_taken(p, ask->round) > place_mask;
			return 0;
		}
	}
	s->cell.none = 1;
	return 0;
}

/* Gives the fast slot to s->fresh. */
INLINE void settle(struct flow_place *at, const struct meter_scratch *s, u64 round)
{
	at->flow = s->fresh;
	if (s->taken.wide)
		copy_longs(&at->key, &s->taken.wide_key, WIDE_KEY_WORDS);
	else
		copy_longs(&at->key, &s->taken.key, KEY_WORDS);
	at->patience = place_patience;
	at->tag = tag_of(s, round);
}

/* Adds to a flow to which other CPUs may add at the same time. */
INLINE void add_shared(struct flow *v, const struct flow *a)
{
	__sync_fetch_and_add(&v->packets, a->packets);
	__sync_fetch_and_add(&v->bytes, a->bytes);
	__sync_fetch_and_add(&v->frame_bytes, a->frame_bytes);
	v->last = a->last;
	*(u32 *)&v->in = *(const u32 *)&a->in;
	if (a->tcp_flags & ~v->tcp_flags)
		v->tcp_flags |= a->tcp_flags;
	if (a->min_ttl < v->min_ttl)
		v->min_ttl = a->min_ttl;
	if (a->max_ttl > v->max_ttl)
		v->max_ttl = a->max_ttl;
}

INLINE bool move_to(void *table, const struct flow_place *at)
{
	struct flow *v;

	if (!table)
		return false;
	if (!bpf_map_update_elem(table, &at->key, &at->flow, UPDATE_NOEXIST))
		return true;
	v = bpf_map_lookup_elem(table, &at->key);
	if (v)
		add_shared(v, &at->flow);
	return v;
}

/* Moves the slot's present flow to the table; false = the table is full. */
INLINE bool move_out(const struct flow_place *at, u64 round)
{
	if (at->tag & 1)
		return move_to(table_of_cpu(&wide_flows, round), at);
	NO_MERGE();
	return move_to(table_of_cpu(&flows, round), at);
}
