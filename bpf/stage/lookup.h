/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The receiver of a frame (frame-rules §4). */
#pragma once
#include "stage/aside.h"
#include "stage/flood.h"

/* The port that owns the destination MAC, if it is in the frame's segment; else 0. For a frame from a port it may be
 * the host behind an uplink, marked by HOST_BEHIND. */
INLINE u32 known_by_owner(struct frame *f)
{
	u32 slot = owner_of(f, f->facts->dst);
	struct port *r;

	if (!slot)
		return 0;
	r = port_at(f->facts->half, slot);
	if (!r)
		return 0;
	if (UNLIKELY(r->rules & (RULE_WAITS | RULE_SIBLINGS))) {
		slot = owner_here(f->facts->half, slot, f->facts->segment, mac_number(f->facts->dst)); /* S99, S111 */
		r = port_at(f->facts->half, slot);
		if (!slot || !r)
			return 0;
	}
	if (UNLIKELY(r->flags & PORT_UPLINK)) {
		if (f->in->flags & PORT_UPLINK || !(r->flags & PORT_CARRIES_HOST))
			return 0;
		return admits(f->facts->half, r, f->facts->segment) ? slot | HOST_BEHIND : 0;
	}
	return admits(f->facts->half, r, f->facts->segment) ? slot : 0;
}

/* The port on which the MAC was learned, if its guest runs here (S99); else 0. */
INLINE u32 known_by_learning(struct frame *f)
{
	u32 slot = learned_at(f);
	struct port *r;

	if (!slot)
		return 0;
	r = port_at(f->facts->half, slot);
	return r && !waits(slot, r) ? slot : 0;
}

/* The common case, a frame with one receiver: the known one when nobody listens in, or the uplink when nobody else
 * receives unknown destinations. */
INLINE s32 deliver_only(struct frame *f, u32 slot)
{
	struct port *r = port_at(f->facts->half, slot);
	enum reason why;
	s32 verdict;

	if (!r || !(r->flags & PORT_CONNECTED))
		return drop(f, REASON_UNKNOWN_UNICAST);
	why = r->flags & PORT_UPLINK ? refuse_uplink(f, r) : refuse_known(f, r);
#ifdef TRIAL_STAGES
	if (!why)
		why = trial_receiver(f, slot);
#endif
	if (UNLIKELY(why)) {
		count_refusal(f, slot, why);
		return drop(f, why);
	}
	verdict = hand_over_only(f, slot, r);
	if (UNLIKELY(!f->facts->delivered))
		return undelivered(f);
	f->count->delivered++;
	return verdict;
}

/* Slot of the only possible receiver of a unicast frame, 0 = there may be several, or none. */
INLINE u32 only_receiver(struct frame *f)
{
	if (f->facts->known - 1 < HOST_BEHIND - 1)
		return f->in->flags & (SWITCH_HAS_PROMISCUOUS | PORT_TX_UPLINK) ? 0 : f->facts->known;
	return !f->facts->known && f->in->flags & PORT_UNKNOWN_LEAVES ? uplink_for(f) : 0;
}

/* The frame may have several receivers. */
INLINE s32 forward_aside(struct frame *f)
{
	struct aside *a = aside_begin();
	struct frame there;

	if (!a)
		return drop(f, REASON_DEVICE_REFUSED);
	there = aside_of(f, a);
	return aside_end(a, there.facts->known ? flood_known(&there) : flood(&there));
}

INLINE s32 forward(struct frame *f)
{
	u32 only;

	if (f->facts->class == CLASS_UNICAST) {
		f->facts->known = known_by_owner(f);
		if (f->facts->known)
			f->facts->to_host = 0;
		else if (f->facts->to_host)
			return to_host(f);
		else
			f->facts->known = known_by_learning(f);
		if (f->facts->known == f->facts->slot)
			return drop(f, REASON_OWN_DESTINATION);
		only = only_receiver(f);
		if (LIKELY(only))
			return deliver_only(f, only);
	}
	if (UNLIKELY(f->in->flags & SWITCH_METERS))
		meter_read(f);
	return forward_aside(f);
}
