/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The host's own frames, if it keeps addresses on an uplink's device: they are looked up before they leave, so that the
 * host reaches the ports of its segment (frame-rules, "The host's own traffic"). A frame for an unknown destination
 * leaves unchanged. */
#pragma once
#include "stage/admit.h"
#include "stage/aside.h"
#include "stage/lookup.h"

/* Is this a copy that the switch handed to this device? Then it entered by a port, and the kernel remembers by which.
 * The host's own frames entered nowhere or, when the host routes them, by a device whose frames reach its stack; a
 * port's frames never do. */
INLINE bool is_switch_copy(struct frame *f)
{
	u32 slot = slot_of(f->skb->ingress_ifindex);
	struct port *p;

	if (LIKELY(!slot))
		return false;
	p = port_at(f->facts->half, slot);
	return p && (p->flags & (PORT_CONNECTED | PORT_UPLINK)) == PORT_CONNECTED;
}

/* Gives copies to the ports that want the frame; the frame also leaves. */
NOINLINE s32 copy_and_leave(struct frame *f)
{
	struct group *g = group_of(f);

	if (g)
		consider_all(f, f->facts->class == CLASS_UNICAST ? &g->unknown : &g->all);
	if (f->facts->pending)
		hand_over_pending(f, false);
	set_tag(f, &f->facts->came);
	capture_deliver(f, f->facts->slot, 0);
	return VERDICT_NEXT;
}

/* The receiver is here: the frame does not leave. */
NOINLINE s32 keep(struct frame *f)
{
	struct group *g = group_of(f);
	s32 verdict = VERDICT_DROP;

	if (g && f->in->flags & SWITCH_HAS_PROMISCUOUS)
		consider_all(f, &g->promiscuous);
	consider(f, f->facts->known);
	if (f->facts->pending)
		verdict = hand_over_pending(f, true);
	if (f->facts->delivered)
		f->count->packets_from_host_kept++;
	else
		f->count->packets_from_host_dropped++;
	if (capturing && !f->facts->delivered)
		capture_drop(f, f->facts->lowest_refusal);
	if (recording && !f->facts->delivered) {
		struct record_control *ctl = record_ctl();

		if (ctl)
			ctl->reason = f->facts->lowest_refusal;
	}
	return verdict;
}

/* Marks the frame's source, because the frame may come back by another uplink (S91). */
NOINLINE s32 mark_from_host(struct frame *f)
{
	struct mac_key k;

	mac_key_of(&k, f->facts->segment, f->facts->src);
	if (owner_of(f, f->facts->src) == f->facts->slot)
		mark_own(f, &k);
	else
		mark(&k, f->facts->now);
	return 0;
}

NOINLINE u32 known_to_host(struct frame *f)
{
	if (f->facts->class != CLASS_UNICAST)
		return 0;
	return known_by_owner(f) ?: known_by_learning(f);
}

INLINE s32 look_up_from_host(struct frame *f)
{
	struct aside *a = aside_begin();
	struct frame there;

	if (!a)
		return VERDICT_NEXT;
	there = aside_of(f, a);
	mark_from_host(&there);
	there.facts->known = known_to_host(&there);
	return aside_end(a, there.facts->known ? keep(&there) : copy_and_leave(&there));
}

/* One frame about to leave by the uplink at slot. */
INLINE s32 host_frame(struct __sk_buff *skb, u32 slot)
{
	struct facts facts = { .slot = slot, .from_host = 1 };
	struct frame f = { .skb = skb, .facts = &facts };
	struct control *c = plan_in_force();

	if (!c)
		return VERDICT_NEXT;
	facts.half = c->generation & 1;
	facts.owner_seed = c->owner_seed[facts.half];
	f.in = port_at(facts.half, slot);
	if (!f.in || !(f.in->flags & PORT_CARRIES_HOST))
		return VERDICT_NEXT;
	if (!read_header(&f) || !mac_equal(facts.src, f.in->mac))
		return VERDICT_NEXT;
	if (!recording && (skb->mark == MARK_AGENT || is_switch_copy(&f)))
		return VERDICT_NEXT;
	f.count = counters_of(slot);
	if (!f.count || !read_frame(&f))
		return VERDICT_NEXT;
	if (facts.class == CLASS_MULTICAST && is_link_control(facts.dst))
		return VERDICT_NEXT; /* a protocol between the host and the physical switch */
	if (facts.l3_length > f.in->switch_mtu || classify(&f))
		return VERDICT_NEXT;
	facts.now = clock();
	f.count->packets_from_host++;
	capture_admit(&f, true);
	if (UNLIKELY(f.in->flags & SWITCH_METERS))
		meter_read(&f);
	return look_up_from_host(&f);
}
