/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Who is considered as a receiver (frame-rules §4). */
#pragma once
#include "emit.h"

/* The port whose own MAC this is, if it is in the frame's segment; else 0. */
INLINE u32 known_by_owner(struct frame *f)
{
	u32 slot = owner_of(f, f->dst);
	struct port *r;

	if (!slot)
		return 0;
	r = port_at(f->half, slot);
	return r && !(r->flags & PORT_UPLINK) && admits(f->half, r, f->segment) ? slot : 0;
}

/* The port the MAC was learned on, if the entry is alive and the port still in the segment; else 0. */
INLINE u32 known_by_learning(struct frame *f)
{
	struct mac_key k;
	struct learned *e;
	struct port *r;
	u32 slot;

	if (!(f->in->flags & SWITCH_LEARNS))
		return 0;
	mac_key_of(&k, f->segment, f->dst);
	e = bpf_map_lookup_elem(&macs, &k);
	if (!e)
		return 0;
	slot = e->slot;
	r = port_at(f->half, slot);
	if (!r || (r->flags & (PORT_CONNECTED | PORT_LEARNS)) != (PORT_CONNECTED | PORT_LEARNS))
		return 0;
	if (f->now - e->seen > r->ageing) /* S17, S93 */
		return 0;
	return admits(f->half, r, f->segment) ? slot : 0;
}

INLINE struct group *group_of(struct frame *f)
{
	u32 in_switch = f->segment & (SEGMENT_AD | VID_MASK);
	u32 per_half = MAX_SWITCHES * SEGMENTS_PER_SWITCH / CHUNK;
	u32 i = f->half * per_half + (f->in->switch_id * SEGMENTS_PER_SWITCH + in_switch) / CHUNK;
	struct segment_chunk *c = bpf_map_lookup_elem(&segments, &i);

	if (!c)
		return 0;
	i = f->half * MAX_GROUPS + c->group[in_switch % CHUNK];
	return bpf_map_lookup_elem(&groups, &i);
}

struct walk {
	struct frame *f;
	u32 chunk;
};

static s64 walk_one(u32 i, struct walk *w)
{
	struct frame *f = w->f;
	u32 at = w->chunk + i / CHUNK;
	struct member_chunk *c = bpf_map_lookup_elem(&members, &at);
	u32 slot;

	if (!c)
		return 1;
	slot = c->slot[i % CHUNK];
	if (slot != f->slot && slot != f->known)
		consider(f, slot);
	return 0;
}

INLINE void consider_all(struct frame *f, const struct member_run *run)
{
	struct walk w = { .f = f, .chunk = f->half * MAX_MEMBER_CHUNKS + run->chunk };

	if (run->count)
		bpf_loop(run->count, walk_one, &w, 0);
}

INLINE void consider_uplink(struct frame *f, u32 uplink)
{
	if (f->in->flags & PORT_UPLINK || !(f->in->flags & SWITCH_HAS_UPLINKS))
		return; /* S31 */
	if (uplink)
		consider(f, uplink);
	else
		count_refusal(f, 0, REASON_NO_UPLINK);
}

/* The receiver is known: it, and whoever listens in. */
INLINE s32 forward_known(struct frame *f)
{
	u32 listens = f->in->flags & (SWITCH_HAS_PROMISCUOUS | PORT_TX_UPLINK);

	if (f->known == f->slot)
		return drop(f, REASON_OWN_DESTINATION);
	if (UNLIKELY(listens)) {
		u32 uplink = uplink_for(f);
		struct group *g = group_of(f);

		if (g && listens & SWITCH_HAS_PROMISCUOUS)
			consider_all(f, &g->promiscuous);
		if (listens & PORT_TX_UPLINK)
			consider_uplink(f, uplink); /* S35 */
	}
	consider(f, f->known); /* last, so that it gets the frame itself */
	return finish(f);
}

INLINE s32 forward(struct frame *f)
{
	u32 uplink;
	struct group *g;

	if (f->class == CLASS_UNICAST) {
		f->known = known_by_owner(f);
		if (f->known)
			f->to_host = 0;
		else if (f->to_host)
			return to_host(f);
		else
			f->known = known_by_learning(f);
		if (f->known)
			return forward_known(f);
	}
	uplink = f->in->flags & PORT_UPLINK ? 0 : uplink_for(f);
	g = group_of(f);
	if (g)
		consider_all(f, f->class == CLASS_UNICAST ? &g->unknown : &g->all);
	consider_uplink(f, uplink);
	return finish(f);
}
