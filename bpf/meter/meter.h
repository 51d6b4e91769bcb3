/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Metering: adds a frame to its flow at the port it came from and at those that get copies (frame-rules §9). It is
 * called where the ports' own counters count, so that both agree. A flow that does not fit never displaces another:
 * its packets are counted as lost at the point. */
#pragma once
#include "meter/common.h"

/* How many of the next n packets are metered. *last tells whether the last of them is. */
INLINE u32 meter_sample(u32 *skip, u32 n, u32 rate, u32 *last)
{
	u32 s = *skip < rate ? *skip : rate, more, at;

	if (s >= n) {
		*skip = s - n;
		return 0;
	}
	more = (n - s - 1) / (rate + 1);
	at = s + more * (rate + 1);
	*skip = at + rate + 1 - n;
	*last = at == n - 1;
	return more + 1;
}

/* Adds to a flow that only this CPU writes. */
INLINE void add_own(struct flow *v, const struct meter_scratch *s)
{
	const struct meter_amount *a = &s->amount;

	v->packets += a->packets;
	v->bytes += a->bytes;
	v->frame_bytes += a->frame_bytes;
	v->last = a->now;
	*(u32 *)&v->in = a->in_out;
	v->tcp_flags |= s->taken.tcp_flags;
	if (s->taken.ttl < v->min_ttl)
		v->min_ttl = s->taken.ttl;
	if (s->taken.ttl > v->max_ttl)
		v->max_ttl = s->taken.ttl;
}

/* The flow of a key on this CPU: in its fast slot, or in the table; 0 = there is none. s->cell.none, if there are fast
 * slots: it was looked for in the table. */
INLINE struct flow *find_by_key(struct meter_scratch *s, struct flow_places *places, const struct meter_ask *ask,
				void *tables, const u64 *key, u32 words, u32 wide)
{
	struct flow_place *at;
	void *table;

	if (LIKELY(places)) {
		at = find_place(places, ask, s, key, words, wide);
		if (LIKELY(at)) {
			at->patience = place_patience;
			s->cell.none = 0;
			return &at->flow;
		}
		if (!s->cell.none)
			return 0;
	}
	table = table_of_cpu(tables, ask->round);
	return table ? bpf_map_lookup_elem(table, key) : 0;
}

INLINE struct flow *find_own(struct meter_scratch *s, struct flow_places *places, const struct meter_ask *ask)
{
	u64 point = (ask->what & (METER_SLOT | METER_EGRESS)) | (u64)(u16)(ask->way >> WAY_VLAN_SHIFT) << 16;

	if (s->taken.wide) {
		*(u64 *)&s->taken.wide_key.point = point | (u64) * (u32 *)s->taken.wide_key.macs << 32;
		return find_by_key(s, places, ask, &wide_flows, (const u64 *)&s->taken.wide_key, WIDE_KEY_WORDS, 1);
	}
	NO_MERGE();
	*(u64 *)&s->taken.key.point = point | (u64) * (u32 *)s->taken.key.macs << 32;
	return find_by_key(s, places, ask, &flows, (const u64 *)&s->taken.key, KEY_WORDS, 0);
}

/* Counts packets that did not fit, at a point. */
INLINE void meter_lost(const struct meter_scratch *s, u32 slot)
{
	struct meter_point *p = meter_point_at(slot);

	if (!p)
		return;
	p->lost_packets += s->fresh.packets;
	p->lost_bytes += s->fresh.bytes;
	p->lost_frame_bytes += s->fresh.frame_bytes;
	p->lost_flows++;
}

INLINE void meter_fresh(struct meter_scratch *s)
{
	const struct meter_amount *a = &s->amount;
	struct flow *v = &s->fresh;

	v->packets = a->packets;
	v->bytes = a->bytes;
	v->frame_bytes = a->frame_bytes;
	v->first = v->last = a->now;
	*(u32 *)&v->in = a->in_out;
	v->tcp_flags = s->taken.tcp_flags;
	v->tos = s->taken.tos;
	v->min_ttl = v->max_ttl = s->taken.ttl;
}

/* Is the frame metered at the point? False: sampling skips it. */
INLINE bool meter_amount_of(struct meter_scratch *s, const struct meter_ask *ask)
{
	u32 direction = ask->what & METER_EGRESS ? 1 : 0, rate = ask->what >> METER_SAMPLING_SHIFT;
	u32 tag = ask->what & METER_TAGGED ? TAG : 0, n = s->taken.packets, last = 1;
	struct meter_amount *a = &s->amount;

	if (rate) {
		struct meter_point *p = meter_point_at(ask->what & METER_SLOT);

		if (!p)
			return false;
		p->observed[direction] += n;
		n = meter_sample(&p->skip[direction], n, rate, &last);
		if (!n)
			return false;
	}
	a->packets = n;
	a->bytes = last ? s->taken.last_bytes : 0;
	a->frame_bytes = last ? s->taken.last_frame_bytes + tag : 0;
	n -= last;
	if (UNLIKELY(n)) {
		a->bytes += (u64)n * s->taken.bytes;
		a->frame_bytes += (u64)n * (s->taken.frame_bytes + tag);
	}
	return true;
}

/* The flow that was counted last is in the table and asks for a fast slot. It gets the slot of a flow that has a cell
 * of its bucket and has not been seen for the set number of frames. That flow goes on in the table, if there is space
 * in it. The new flow begins in the slot with zero counts. */
SEPARATE u32 meter_insist(u64 round)
{
	struct meter_scratch *s = meter_scratch_of_cpu();
	struct flow_places *p = places_of_cpu(round);
	struct flow_place *at;
	u32 *cell = 0;

	if (!s || !p)
		return 0;
	for (u32 i = 0; i < BUCKET; i++) {
		cell = cell_at(p, cell_after(s->cell.at, i));
		if (*cell >> CELL_ROUND_SHIFT == cell_round(round))
			break;
	}
	at = place_at(p, *cell);
	if (*cell >> CELL_ROUND_SHIFT != cell_round(round) || at->tag >> 1 != round || --at->patience)
		return 0;
	at->patience = place_patience;
	if (!move_out(at, round))
		return 0;
	*cell = s->cell.mark | (*cell & place_mask);
	s->amount.packets = s->amount.bytes = s->amount.frame_bytes = 0;
	meter_fresh(s);
	settle(at, s, round);
	return 0;
}

/* Adds what was read last to its flow at one point; false = s->fresh is a flow that must begin, and s->cell says where.
 * frugal: little stack is left, neither for a call nor to keep the fast slots, which are then none. */
INLINE bool meter_flow(struct meter_scratch *s, struct flow_places *places, const struct meter_ask *ask, bool frugal)
{
	struct flow *v;

	if (!meter_amount_of(s, ask))
		return true;
	s->amount.now = ask->now;
	s->amount.in_out = ask->way;
	if (frugal)
		places = open_places_of_cpu(ask);
	if (UNLIKELY(!places))
		s->cell.none = 1;
	v = find_own(s, places, ask);
	if (UNLIKELY(!v)) {
		meter_fresh(s);
		return false;
	}
	add_own(v, s);
	if (!frugal && places && UNLIKELY(s->cell.none))
		meter_insist(ask->round);
	return true;
}

/* Meters what was read last, at one point. It does not read the frame itself, because it may be called with little
 * stack left. A function of its own for the verifier, so that its paths do not multiply with those of the switch. */
SEPARATE u32 meter_frame(u64 what, u64 way, u64 now)
{
	struct meter_scratch *s = meter_scratch_of_cpu();
	struct meter_ask *ask;

	if (!s)
		return 0;
	ask = &s->ask;
	ask->what = what;
	ask->way = way;
	ask->now = now;
	meter_round(ask);
	if (meter_flow(s, 0, ask, true))
		return 0;
	if (!begin_flow(s, ask))
		meter_lost(s, ask->what & METER_SLOT);
	return 0;
}

/* Begins the flow that s->fresh describes, for callers whose stack is large enough for a call. */
SEPARATE u32 meter_begin(u64 what, u64 way, u64 round)
{
	struct meter_scratch *s = meter_scratch_of_cpu();
	struct meter_ask *ask;

	if (!s)
		return 0;
	ask = &s->ask;
	ask->way = way;
	ask->round = round;
	if (!begin_flow(s, ask))
		meter_lost(s, what & METER_SLOT);
	return 0;
}

/* Meters a frame with one receiver, whose packet is known, in one call, because calls are a good part of the cost of
 * metering. what: the direction in and, in the bits of enum meter_both_what, the direction out. */
SEPARATE u32 meter_both(struct __sk_buff *skb, u64 what, u64 way, u64 now)
{
	struct meter_scratch *s = meter_scratch_of_cpu();
	struct meter_ask ask = { .way = way, .now = now };
	struct flow_places *places;

	if (!s || !meter_take(skb, s))
		return 0;
	meter_round(&ask);
	places = open_places_of_cpu(&ask);
	if (what & BOTH_OUT) {
		ask.what = (way >> WAY_OUT_SHIFT & METER_SLOT) | METER_EGRESS |
			   (what & BOTH_OUT_TAGGED ? METER_TAGGED : 0) |
			   (what >> BOTH_OUT_SAMPLING_SHIFT) << METER_SAMPLING_SHIFT;
		if (!meter_flow(s, places, &ask, false))
			meter_begin(ask.what, way, ask.round);
	}
	if (what & BOTH_IN) {
		ask.what = (way & METER_SLOT) | (what & BOTH_IN_TAGGED ? METER_TAGGED : 0) |
			   (what >> BOTH_IN_SAMPLING_SHIFT & 0xffff) << METER_SAMPLING_SHIFT;
		if (!meter_flow(s, places, &ask, false))
			meter_begin(ask.what, way, ask.round);
	}
	return 0;
}

INLINE u64 way_of(struct frame *f, u32 in, u32 out)
{
	return in | (u64)out << WAY_OUT_SHIFT | (u64)(f->facts->segment & (SEGMENT_AD | VID_MASK)) << WAY_VLAN_SHIFT |
	       (u64)f->facts->slot << WAY_ORIGIN_SHIFT;
}

INLINE void meter_at(struct frame *f, u64 what, u32 in, u32 out)
{
	meter_frame(what, way_of(f, in, out), f->facts->now);
}

/* A copy has been handed to the port at slot. The frame must have been read. */
INLINE void meter_out(struct frame *f, u32 slot, const struct port *r, bool tagged)
{
	meter_at(f, slot | METER_EGRESS | (tagged ? METER_TAGGED : 0) | (u64)r->sampling << METER_SAMPLING_SHIFT,
		 f->facts->from_host ? 0 : f->facts->slot, slot);
}

/* The frame has been delivered. It must have been read. */
INLINE void meter_in(struct frame *f)
{
	meter_at(f,
		 f->facts->slot | (f->facts->came.protocol ? METER_TAGGED : 0) |
			 (u64)f->in->sampling << METER_SAMPLING_SHIFT,
		 f->facts->slot, f->facts->sole);
}

/* The frame has been handed to its only receiver, and has not been read for metering. */
INLINE void meter_unicast(struct frame *f, u32 slot, const struct port *r, bool tagged)
{
	u64 what = 0;

	if (r->flags & PORT_METER_EGRESS)
		what |= BOTH_OUT | (tagged ? BOTH_OUT_TAGGED : 0) | (u64)r->sampling << BOTH_OUT_SAMPLING_SHIFT;
	if (f->in->flags & PORT_METER_INGRESS)
		what |= BOTH_IN | (f->facts->came.protocol ? BOTH_IN_TAGGED : 0) |
			(u64)f->in->sampling << BOTH_IN_SAMPLING_SHIFT;
	what = meter_common(f->skb, what, way_of(f, f->facts->slot, slot), f->facts->now);
	if (LIKELY(!what))
		return;
	know_packet(f);
	meter_both(f->skb, what, way_of(f, f->facts->slot, slot), f->facts->now);
}
