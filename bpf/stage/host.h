/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The host's own frames, if it keeps addresses on an uplink's device: they are looked up before they leave, so that the
 * host reaches the ports of its segment (frame-rules, "The host's own traffic"). A frame for an unknown destination
 * leaves unchanged. */
#pragma once
#include "stage/admit.h"
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
	p = port_at(f->half, slot);
	return p && (p->flags & (PORT_CONNECTED | PORT_UPLINK)) == PORT_CONNECTED;
}

/* Gives copies to the ports that want the frame; the frame also leaves. */
NOINLINE s32 copy_and_leave(struct frame *f)
{
	struct group *g = group_of(f);

	if (g)
		consider_all(f, f->class == CLASS_UNICAST ? &g->unknown : &g->all);
	if (f->pending)
		hand_over_pending(f, false);
	set_tag(f, &f->came);
	capture_deliver(f, f->slot, 0);
	return VERDICT_NEXT;
}

/* The receiver is here: the frame does not leave. */
NOINLINE s32 keep(struct frame *f)
{
	struct group *g = group_of(f);
	s32 verdict = VERDICT_DROP;

	if (g && f->in->flags & SWITCH_HAS_PROMISCUOUS)
		consider_all(f, &g->promiscuous);
	consider(f, f->known);
	if (f->pending)
		verdict = hand_over_pending(f, true);
	if (f->delivered)
		f->count->packets_from_host_kept++;
	else
		f->count->packets_from_host_dropped++;
	if (capturing && !f->delivered)
		capture_drop(f, f->lowest_refusal);
	if (recording && !f->delivered) {
		struct record_control *ctl = record_ctl();

		if (ctl)
			ctl->reason = f->lowest_refusal;
	}
	return verdict;
}

/* Marks the frame's source, because the frame may come back by another uplink (S91). */
NOINLINE s32 mark_from_host(struct frame *f)
{
	struct mac_key k;

	mac_key_of(&k, f->segment, f->src);
	if (owner_of(f, f->src) == f->slot)
		mark_own(f, &k);
	else
		mark(&k, f->now);
	return 0;
}

NOINLINE u32 known_to_host(struct frame *f)
{
	if (f->class != CLASS_UNICAST)
		return 0;
	return known_by_owner(f) ?: known_by_learning(f);
}

/* One frame about to leave by the uplink at slot. */
INLINE s32 host_frame(struct __sk_buff *skb, u32 slot)
{
	struct frame f = { .skb = skb, .slot = slot, .from_host = 1 };
	struct control *c = plan_in_force();
	struct frame copy;

	if (!c)
		return VERDICT_NEXT;
	f.half = c->generation & 1;
	f.owner_seed = c->owner_seed[f.half];
	f.in = port_at(f.half, slot);
	if (!f.in || !(f.in->flags & PORT_CARRIES_HOST))
		return VERDICT_NEXT;
	if (!read_header(&f) || !mac_equal(f.src, f.in->mac))
		return VERDICT_NEXT;
	if (!recording && (skb->mark == MARK_AGENT || is_switch_copy(&f)))
		return VERDICT_NEXT;
	f.count = counters_of(slot);
	if (!f.count || !read_frame(&f))
		return VERDICT_NEXT;
	if (f.class == CLASS_MULTICAST && is_link_control(f.dst))
		return VERDICT_NEXT; /* a protocol between the host and the physical switch */
	if (f.l3_length > f.in->switch_mtu || classify(&f))
		return VERDICT_NEXT;
	f.now = clock();
	f.count->packets_from_host++;
	capture_admit(&f, true);
	if (UNLIKELY(f.in->flags & SWITCH_METERS))
		meter_read(&f);
	IN_MEMORY(f);
	copy = f;
	mark_from_host(&copy);
	copy.known = known_to_host(&copy);
	return copy.known ? keep(&copy) : copy_and_leave(&copy);
}
