/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The common case of metering: a frame with one receiver, of TCP or UDP in IPv4, whose flows have fast slots and are
 * not sampled. On a live host, metering mostly costs waiting for memory: everything that happens between two frames
 * evicts its lines from the fastest cache. So this code touches few lines: it works in registers and on the stack, and
 * reads no record of the CPU or the port. meter/meter.h does whatever this does not. */
#pragma once
#include "meter/read.h"

/* The arguments of meter_frame in one number: it takes numbers, so that the frame's record can stay in registers. */
enum meter_what {
	METER_SLOT = 0x7fff,
	METER_EGRESS = FLOW_EGRESS,
	METER_TAGGED = 1 << 16, /* the frame has a tag at this port */
	METER_SAMPLING_SHIFT = 32,
};

enum meter_both_what {
	BOTH_OUT = 1 << 0,
	BOTH_OUT_TAGGED = 1 << 1,
	BOTH_IN = 1 << 2,
	BOTH_IN_TAGGED = 1 << 3,
	BOTH_IN_SAMPLING_SHIFT = 32,
	BOTH_OUT_SAMPLING_SHIFT = 48,
	BOTH_SAMPLING = 0xffff,
};

/* The part of a frame's flow that is the same at all points. */
struct meter_common {
	u64 key[KEY_WORDS]; /* of the first word only the upper half, which is part of the MACs */
	u64 hash; /* of all words but the first */
	u64 tag; /* of the fast slots of its flows */
	u64 places;
	u32 now;
	u32 in_out;
	u32 packets;
	u32 bytes;
	u32 frame_bytes; /* without a tag */
	u16 tcp_flags;
	u8 ttl;
};

/* Reads what meter_take and meter_lengths would read of the frame, summed over the packets that it stands for; false =
 * the frame is not a common one. */
INLINE bool read_common(struct __sk_buff *skb, struct meter_common *m)
{
	const u8 *p = (u8 *)(u64)skb->data, *end = (u8 *)(u64)skb->data_end;
	struct packet k;

	if (p + ETH_HEADER > end || *(be16 *)(p + 12) != HTONS(TYPE_IPV4) || !common_ipv4(skb, &k, p, end))
		return false;
	m->key[0] = (u64) * (u32 *)p << 32;
	m->key[1] = *(u64 *)(p + 4);
	m->key[2] = *(u64 *)k.addresses;
	m->key[3] = k.ports | (u64)k.protocol << 32;
	m->tcp_flags = k.tcp_flags;
	m->ttl = k.ttl;
	m->packets = 1;
	m->bytes = k.end - ETH_HEADER;
	m->frame_bytes = skb->len;
	if (UNLIKELY(skb->gso_size)) {
		u32 n = skb->gso_segs;

		if (!n || skb->len <= k.payload)
			return false;
		m->packets = n;
		m->bytes += (n - 1) * (k.payload - ETH_HEADER);
		m->frame_bytes = m->bytes + n * ETH_HEADER;
	}
	m->hash = hash_of_frame(m->key);
	return true;
}

INLINE bool is_place_of(const struct flow_place *at, const struct meter_common *m, u64 first)
{
	const u64 *held = (const u64 *)&at->key;

	return at->tag == m->tag && held[0] == first && held[1] == m->key[1] && held[2] == m->key[2] &&
	       held[3] == m->key[3];
}

/* The fast slot of the frame's flow at a point, 0 = it has none. */
INLINE struct flow_place *common_place(struct flow_places *p, const struct meter_common *m, u64 first)
{
	u64 h = mixed(m->hash + hash_of_point(first));
	u32 at = first_cell(h, m->places), mark = cell_mark(h, m->tag >> 1);

#pragma clang loop unroll(disable)
	for (u32 i = 0; i < BUCKET; i++) {
		u32 cell = *cell_at(p, cell_after(at, i));

		if (LIKELY(cell >> CELL_HASH_SHIFT == mark >> CELL_HASH_SHIFT)) {
			struct flow_place *place = place_at(p, cell);

			if (LIKELY(is_place_of(place, m, first)))
				return place;
		} else if (cell >> CELL_ROUND_SHIFT != mark >> CELL_ROUND_SHIFT) {
			return 0;
		}
	}
	return 0;
}

/* Adds the frame to its flow at a point; false = the flow has no fast slot. */
INLINE bool add_common(struct flow_places *p, const struct meter_common *m, u64 point, bool tagged)
{
	struct flow_place *at = common_place(p, m, m->key[0] | point);
	struct flow *v;

	if (UNLIKELY(!at))
		return false;
	if (UNLIKELY(at->patience != place_patience))
		at->patience = place_patience;
	v = &at->flow;
	v->packets += m->packets;
	v->bytes += m->bytes;
	v->frame_bytes += m->frame_bytes + (tagged ? m->packets * TAG : 0);
	v->last = m->now;
	*(u32 *)&v->in = m->in_out;
	v->tcp_flags |= m->tcp_flags;
	if (UNLIKELY(m->ttl < v->min_ttl))
		v->min_ttl = m->ttl;
	if (UNLIKELY(m->ttl > v->max_ttl))
		v->max_ttl = m->ttl;
	return true;
}

/* Meters what it can of enum meter_both_what, and returns what is left. */
SEPARATE u64 meter_common(struct __sk_buff *skb, u64 what, u64 way, u64 now)
{
	struct meter_common m = { .now = now, .in_out = way };
	struct meter_ask ask = {};
	struct flow_places *p;
	u64 vlan;

	meter_round(&ask);
	p = open_places_of_cpu(&ask);
	if (!p || !read_common(skb, &m))
		return what;
	m.tag = ask.round << 1;
	m.places = ask.places;
	vlan = (way >> WAY_VLAN_SHIFT & 0xffff) << 16;
	if (what & BOTH_OUT && !(what >> BOTH_OUT_SAMPLING_SHIFT) &&
	    add_common(p, &m, (way >> WAY_OUT_SHIFT & METER_SLOT) | METER_EGRESS | vlan, what & BOTH_OUT_TAGGED))
		what &= ~(u64)BOTH_OUT;
	if (what & BOTH_IN && !(what >> BOTH_IN_SAMPLING_SHIFT & BOTH_SAMPLING) &&
	    add_common(p, &m, (way & METER_SLOT) | vlan, what & BOTH_IN_TAGGED))
		what &= ~(u64)BOTH_IN;
	return what & (BOTH_OUT | BOTH_IN) ? what : 0;
}
