/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Frames with more than one receiver. An accepted receiver waits until the next one is accepted and then gets a clone;
 * the last one gets the frame itself (K15). */
#pragma once
#include "core/outside.h"
#include "stage/storm.h"

NOINLINE s32 hand_over_pending(struct frame *f, bool last)
{
	u32 slot = f->facts->pending & (HOST_BEHIND - 1);
	struct port *r = port_at(f->facts->half, slot);

	if (!r)
		return VERDICT_DROP;
	return f->facts->pending & HOST_BEHIND ? hand_to_host(f, slot, r, last) : hand_over(f, slot, r, last);
}

/* Considers one receiver: refuses it with a reason, or makes it the next in line for a copy. */
NOINLINE void consider(struct frame *f, u32 receiver)
{
	u32 slot = receiver & (HOST_BEHIND - 1);
	struct port *r = port_at(f->facts->half, slot);
	enum reason why;

	if (!r || !(r->flags & PORT_CONNECTED))
		return;
	if (receiver & HOST_BEHIND)
		why = refuse_host(f, r);
	else
		why = r->flags & PORT_UPLINK ? refuse_uplink(f, r) : refuse_port(f, slot, r, slot == f->facts->known);
#ifdef TRIAL_STAGES
	if (!why)
		why = trial_receiver(f, slot);
#endif
	if (why) {
		count_refusal(f, slot, why);
		return;
	}
	if (f->facts->pending)
		hand_over_pending(f, false);
	f->facts->pending = receiver;
}

/* Considers a member of the segment. An uplink is a member for the host behind it, which gets frames from ports. Frames
 * from outside reach the host on the uplink where they arrive. */
INLINE void consider_member(struct frame *f, u32 slot)
{
	struct port *r = port_at(f->facts->half, slot);

	if (r && r->flags & PORT_UPLINK) {
		if (f->in->flags & PORT_UPLINK)
			return;
		slot |= HOST_BEHIND;
	}
	consider(f, slot);
}

/* Every receiver has been considered. */
INLINE s32 finish(struct frame *f)
{
	s32 verdict = VERDICT_DROP;

	if (f->facts->pending)
		verdict = hand_over_pending(f, !f->facts->to_host);
	if (f->facts->to_host)
		return to_host(f);
	if (!f->facts->delivered)
		return undelivered(f);
	count_delivered(f);
	return verdict;
}

INLINE struct group *group_of(struct frame *f)
{
	u32 in_switch = f->facts->segment & (SEGMENT_AD | VID_MASK);
	u32 per_half = MAX_SWITCHES * SEGMENTS_PER_SWITCH / CHUNK;
	u32 i = f->facts->half * per_half + (f->in->switch_id * SEGMENTS_PER_SWITCH + in_switch) / CHUNK;
	struct segment_chunk *c = bpf_map_lookup_elem(&segments, &i);

	if (!c)
		return 0;
	i = f->facts->half * MAX_GROUPS + c->group[in_switch % CHUNK];
	return bpf_map_lookup_elem(&groups, &i);
}

struct walk {
	struct frame *f;
	u32 chunk;
	u32 reserved;
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
	if (slot != f->facts->slot && slot != f->facts->known)
		consider_member(f, slot);
	return 0;
}

INLINE void consider_all(struct frame *f, const struct member_run *run)
{
	struct walk w = { .f = f, .chunk = f->facts->half * MAX_MEMBER_CHUNKS + run->chunk };

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

/* The receiver is known, and others listen in. */
NOINLINE s32 flood_known(struct frame *f)
{
	u32 uplink = uplink_for(f);
	struct group *g = group_of(f);

	if (g && f->in->flags & SWITCH_HAS_PROMISCUOUS)
		consider_all(f, &g->promiscuous);
	if (f->in->flags & PORT_TX_UPLINK)
		consider_uplink(f, uplink); /* S35 */
	consider(f, f->facts->known); /* last, so that it gets the frame itself */
	return finish(f);
}

/* The port has sent too many frames for unknown destinations: the other ports get no copy. Stations outside are not
 * known here, so the copy for the uplink still leaves. */
NOINLINE s32 flood_nobody(struct frame *f)
{
	u32 uplink = uplink_for(f);

	f->count->unknown_not_flooded++;
	count_refusal(f, 0, REASON_STORM_CONTROL);
	consider_uplink(f, uplink);
	return finish(f);
}

INLINE s32 stop_storm(struct frame *f)
{
	if (f->facts->class == CLASS_UNICAST && f->in->flags & SWITCH_HAS_UPLINKS)
		return flood_nobody(f);
	tell(f->facts->slot, TELL_REFUSED, REASON_STORM_CONTROL, f->facts->segment, mac_number(f->facts->src));
	return drop(f, REASON_STORM_CONTROL);
}

/* Every flooded frame of a port is checked for signs of a loop, even if storm control lets few of them through. */
INLINE void watch_for_loop(struct frame *f)
{
	u64 mac = mac_number(f->facts->src);
	u32 owner;

	count_flooded(f->facts->slot, f->facts->segment, mac);
	if (LIKELY(mac_equal(f->facts->src, f->in->mac)))
		return;
	owner = owner_of(f, f->facts->src);
	if (owner && owner != f->facts->slot && !siblings(f->facts->half, f->in, owner))
		sign_of_loop(f->facts->slot, SIGN_OWNED, f->facts->segment, mac);
}

/* The port on which the MAC was learned, if the entry has not expired and the port is still in the segment; else 0. */
INLINE u32 learned_at(struct frame *f)
{
	struct mac_key k;
	struct learned *e;
	struct port *r;
	u32 slot;

	if (!(f->in->flags & SWITCH_LEARNS))
		return 0;
	mac_key_of(&k, f->facts->segment, f->facts->dst);
	e = bpf_map_lookup_elem(&macs, &k);
	if (!e)
		return 0;
	slot = e->slot;
	r = port_at(f->facts->half, slot);
	if (!r || (r->flags & (PORT_CONNECTED | PORT_LEARNS)) != (PORT_CONNECTED | PORT_LEARNS))
		return 0;
	if (elapsed(f->facts->now, e->seen) > r->ageing) /* S17, S93 */
		return 0;
	return admits(f->facts->half, r, f->facts->segment) ? slot : 0;
}

/* A frame from outside, for a MAC of a port whose guest has left: the physical network does not know yet where the
 * guest runs (S99). A port that receives unknown destinations is considered with the others. */
NOINLINE u32 refuse_left(struct frame *f)
{
	u32 slot = owner_of(f, f->facts->dst) ?: learned_at(f);
	struct port *r = port_at(f->facts->half, slot);

	if (!slot || !r || !(r->rules & RULE_LEFT) || r->flags & (PORT_FLOODS | PORT_PROMISCUOUS))
		return 0;
	if (!admits(f->facts->half, r, f->facts->segment) || refuse_port(f, slot, r, true) != REASON_GUEST_ELSEWHERE)
		return 0;
	count_refusal(f, slot, REASON_GUEST_ELSEWHERE);
	return slot;
}

/* The destination is known behind an endpoint of the tunnel: the ports that want unknown destinations get no copy (S190). */
INLINE bool is_for_tunnel(struct frame *f)
{
	return f->facts->class == CLASS_UNICAST && UNLIKELY(f->in->vni) &&
	       is_outside(f->facts->half, f->facts->slot, f->facts->segment, mac_number(f->facts->dst), f->facts->now);
}

INLINE const struct member_run *receivers_of(struct frame *f, const struct group *g, bool outside)
{
	if (outside)
		return &g->promiscuous;
	return f->facts->class == CLASS_UNICAST ? &g->unknown : &g->all;
}

/* Group destinations and unknown unicast. */
NOINLINE s32 flood(struct frame *f)
{
	bool outside = is_for_tunnel(f);
	struct group *g;
	u32 uplink;

	if (!(f->in->flags & PORT_UPLINK) && !outside)
		watch_for_loop(f);
	if (UNLIKELY(f->in->flags & PORT_STORM_CONTROL) && !outside && !storm_allows(f))
		return stop_storm(f);
	uplink = f->in->flags & PORT_UPLINK ? 0 : uplink_for(f);
	if (f->facts->class == CLASS_UNICAST && f->in->flags & PORT_UPLINK)
		refuse_left(f);
	g = group_of(f);
	if (g)
		consider_all(f, receivers_of(f, g, outside));
	if (f->facts->class == CLASS_UNICAST && f->facts->pending && !outside)
		f->count->unknown_flooded++;
	consider_uplink(f, uplink);
	return finish(f);
}
