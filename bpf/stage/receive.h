/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Does a receiver accept its copy (frame-rules §5)? */
#pragma once
#include "capture/capture.h"
#include "stage/learn.h"
#include "stage/team.h"

INLINE bool is_reflected(struct frame *f)
{
	if (!f->facts->reflected)
		f->facts->reflected = 1 + sent_recently(f);
	return f->facts->reflected == 2;
}

/* The checks for frames that came back from outside. */
INLINE enum reason refuse_loop(struct frame *f, const struct port *r)
{
	u32 check = f->facts->class == CLASS_UNICAST ? SWITCH_REVERSE_PATH_PROMISCUOUS : SWITCH_REVERSE_PATH;

	if (!(f->in->flags & check))
		return REASON_NONE; /* S40 */
	if (r->team_policy != TEAM_IP_HASH && !is_own_uplink(f, r))
		return REASON_REVERSE_PATH; /* S38, S39 */
	return is_reflected(f) ? REASON_REFLECTED : REASON_NONE; /* S91 */
}

/* The rules for the port to which a frame is addressed. */
INLINE enum reason refuse_known(struct frame *f, const struct port *r)
{
	if (UNLIKELY((r->flags & (PORT_BLOCKED | PORT_UP | PORT_VIOLATION)) != PORT_UP)) {
		if (r->flags & PORT_BLOCKED)
			return r->rules & RULE_LOOP_BLOCKED ? REASON_LOOP_BLOCKED : REASON_RECEIVER_BLOCKED; /* S41 */
		return r->flags & PORT_UP ? REASON_MAC_CHANGE /* S3 */ : REASON_RECEIVER_DOWN;
	}
	return f->facts->l3_length > r->mtu ? REASON_MTU_EXCEEDED : REASON_NONE;
}

INLINE enum reason refuse_port(struct frame *f, u32 slot, const struct port *r, bool known)
{
	enum reason why = refuse_known(f, r);

	if (UNLIKELY(r->rules & RULE_WAITS) && (r->flags & (PORT_BLOCKED | PORT_UP)) == PORT_UP && waits(slot, r))
		return r->rules & RULE_LEFT ? REASON_GUEST_ELSEWHERE : REASON_RECEIVER_WAITING; /* S99 */
	if (known || f->facts->from_host || !(f->in->flags & PORT_UPLINK) || (why && why != REASON_MTU_EXCEEDED))
		return why;
	return refuse_loop(f, r) ?: why;
}

/* An uplink that is down or blocked, or that does not carry the segment, has no host behind it; only the size remains
 * to be checked. */
INLINE enum reason refuse_host(struct frame *f, const struct port *u)
{
	return f->facts->l3_length > u->mtu ? REASON_MTU_EXCEEDED : REASON_NONE;
}

INLINE enum reason refuse_uplink(struct frame *f, const struct port *r)
{
	if (UNLIKELY(r->flags & PORT_BLOCKED))
		return REASON_RECEIVER_BLOCKED;
	if (!admits(f->facts->half, r, f->facts->segment))
		return REASON_UPLINK_VLAN; /* S27 */
	return f->facts->l3_length > r->mtu ? REASON_MTU_EXCEEDED : REASON_NONE;
}

#ifdef TRIAL_STAGES
#include "trial_receiver.h" /* a test's: it builds the program with stages that stand for stages to come */
#endif
