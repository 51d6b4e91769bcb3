/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The places of a CPU: where a flow is counted without a call of the kernel's hash. They are taken one after the other, so that flows that begin
 * write memory in order; cells, found by a flow's key, say which place it has. A flow may have any cell of its bucket and takes the first that
 * is free, from the one its key says on. Within a round none becomes free: a flow that meets a free cell has no place, and is not in the CPU's
 * table either unless all places are taken. One that finds no cell or no place is in the table, and is given a place when so many of its frames, or of
 * others like it, have come and none of the flow that holds it: that one then goes on in the table. So flows that have most of the traffic come to be
 * at places, and a flow may be at its place and in the table in one round, each with a part of what was counted. */
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
	CELL_HASH = 31, /* distinguishes most other flows without a look at the place */
};

/* Which round it is, and what is to be known of its places. */
INLINE void meter_round(struct meter_ask *ask)
{
	u32 zero = 0;
	struct meter_control *c = bpf_map_lookup_elem(&meter_control, &zero);

	/* one for all that is asked: when the next has begun, the tables of this one are read after a grace period */
	ask->round = c ? *(volatile u64 *)&c->round : 0;
	ask->places = c ? c->places[ask->round & 1] : 0;
}

INLINE void *table_of_cpu(void *tables, u64 round)
{
	u32 i = (round & 1) * meter_cpus + (recording ? 0 : bpf_get_smp_processor_id());

	return bpf_map_lookup_elem(tables, &i);
}

/* This CPU's places, 0 = none. */
INLINE struct flow_places *places_of_cpu(u64 round)
{
	void *table = table_of_cpu(&flow_places, round);
	u32 zero = 0;

	return table ? bpf_map_lookup_elem(table, &zero) : 0;
}

/* The same, 0 also when they are not to be used. */
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

/* Each word is multiplied by an odd number of its own, and the sum mixed: flows that differ in few bits, such as those of neighbouring addresses,
 * spread as if by chance. Who chooses flows that fall on one bucket gains nothing but that all but a few are in the table, where all would be
 * without places. */
INLINE u64 hash_of(const u64 *key, u32 words)
{
	u64 h = hash_of_point(key[0]) + hash_of_frame(key);

	if (words == WIDE_KEY_WORDS)
		h += key[4] * 0xc2b2ae3d27d4eb4f + key[5] * 0xff51afd7ed558ccd + key[6] * 0xc4ceb9fe1a85ec53;
	return mixed(h);
}

/* The first of the cells that a flow may have, by its hash. */
INLINE u32 first_cell(u64 h, u64 places)
{
	return (h >> (64 - FLOW_PLACES_BITS) & (place_cells - 1)) >> (places & PLACES_SHIFTS);
}

INLINE u64 tag_of(const struct meter_scratch *s, u64 round)
{
	return round << 1 | (s->wide ? 1 : 0);
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

/* The content of a cell, without the place's number. */
INLINE u32 cell_mark(u64 h, u64 round)
{
	return cell_round(round) << CELL_ROUND_SHIFT | (h & CELL_HASH) << CELL_HASH_SHIFT;
}

/* The i-th cell, from 0, that a flow may have. */
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

/* How many are taken. */
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

/* The place of the key. 0 = none: s->cell then names the cell where it may begin. The state for each cell is kept
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
			REREAD(); /* keeping the key's words in registers would need stack that there is not */
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

/* The place belongs to s->fresh from now on. */
INLINE void settle(struct flow_place *at, const struct meter_scratch *s, u64 round)
{
	at->flow = s->fresh;
	if (s->wide)
		copy_longs(&at->key, &s->wide_key, WIDE_KEY_WORDS);
	else
		copy_longs(&at->key, &s->key, KEY_WORDS);
	at->patience = place_patience;
	at->tag = tag_of(s, round);
}

/* Adds to a flow, also one that other CPUs add to. */
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

/* The present flow of the place goes on in the table; false = the table has no space for it. */
INLINE bool move_out(const struct flow_place *at, u64 round)
{
	if (at->tag & 1)
		return move_to(table_of_cpu(&wide_flows, round), at);
	NO_MERGE();
	return move_to(table_of_cpu(&flows, round), at);
}
