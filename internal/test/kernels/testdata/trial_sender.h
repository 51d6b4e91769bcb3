/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The stages of trial_receiver.h that a sender has. */
#pragma once
#include "stage/lookup.h"
#include "trial_receiver.h"

/* The first stage of the sender: who may speak to whom within a segment. */
SEPARATE u32 trial_private(u32 half, u32 slot)
{
	u32 source, destination;

	if (!trial_both(slot | half << 16, &source, &destination))
		return REASON_NONE;
	return source == destination ? REASON_NONE : REASON_PORT_BLOCKED;
}

/* The second: what was heard of addresses. */
SEPARATE u32 trial_heard(u32 slot, u32 segment)
{
	u32 source, destination;

	if (!trial_both(segment, &source, &destination))
		return REASON_NONE;
	return source == slot ? REASON_NONE : REASON_IP_SOURCE_NOT_ALLOWED;
}

/* The third: the frame goes to another segment, where its destination is looked up again. */
SEPARATE u32 trial_route(u32 half, u32 slot, u64 mac, u64 now)
{
	u32 source = 0, destination = 0;
	struct facts facts = { .slot = slot, .half = half & 1, .now = now };
	struct frame f = { .facts = &facts, .in = port_at(half, slot) };
	struct control *c = plan_in_force();

	if (!c || !f.in || !trial_both(slot, &source, &destination))
		return 0;
	facts.owner_seed = c->owner_seed[facts.half];
	facts.segment = segment_of(f.in, destination & VID_MASK, false);
	*(u32 *)facts.dst = mac;
	*(u16 *)(facts.dst + 4) = mac >> 32;
	return known_by_owner(&f) ?: known_by_learning(&f);
}

INLINE enum reason trial_sender(struct frame *f)
{
	struct facts *a = f->facts;

	know_packet(f);
	if (UNLIKELY(trial_private(a->half, a->slot)))
		return REASON_PORT_BLOCKED;
	if (UNLIKELY(trial_heard(a->slot, a->segment)))
		return REASON_IP_SOURCE_NOT_ALLOWED;
	return UNLIKELY(trial_route(a->half, a->slot, mac_number(a->dst), a->now) == a->slot) ? REASON_OWN_DESTINATION
											      : REASON_NONE;
}
