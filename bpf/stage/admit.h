/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* May the frame enter at all (frame-rules §1)? */
#pragma once
#include "stage/guard.h"
#include "stage/loop.h"

INLINE bool is_spanning_tree(const u8 *dst)
{
	const u8 stp[6] = { 0x01, 0x80, 0xc2, 0x00, 0x00, 0x00 };
	const u8 pvst[6] = { 0x01, 0x00, 0x0c, 0xcc, 0xcc, 0xcd };

	return mac_equal(dst, stp) || mac_equal(dst, pvst);
}

/* Link-local control protocols that end at an uplink: 01:80:c2:00:00:0x, CDP/VTP, PVST. */
INLINE bool is_link_control(const u8 *dst)
{
	if (dst[0] != 0x01)
		return false;
	if (dst[1] == 0x80)
		return dst[2] == 0xc2 && !dst[3] && !dst[4] && dst[5] < 0x10;
	return dst[1] == 0x00 && dst[2] == 0x0c && dst[3] == 0xcc && dst[4] == 0xcc && (dst[5] & 0xfe) == 0xcc;
}

/* Marks a frame for the host's stack so that the agent's listeners know that it is not from their neighbour (S98): the
 * kernel removes a tag before it looks for their sockets. Nothing else reads the mark of a frame that is not IP. */
INLINE void mark_tagged(struct frame *f)
{
	if (!recording && UNLIKELY(f->facts->came.protocol))
		f->skb->mark = MARK_NOT_NEIGHBOUR;
}

/* The mark for a port's frame that enters the host's stack through an uplink's device: it did not come over the
 * wire. */
INLINE u32 mark_of_copy(struct __sk_buff *skb)
{
	u8 *p = (u8 *)(u64)skb->data;

	if (UNLIKELY(p + ETH_HEADER > (u8 *)(u64)skb->data_end))
		return MARK_NOT_NEIGHBOUR;
	return is_link_control(p) || *(be16 *)(p + 12) == HTONS(TYPE_BEACON) ? MARK_NOT_NEIGHBOUR : 0;
}

INLINE enum reason source_reason(const struct frame *f)
{
	if (UNLIKELY(f->facts->src[0] & 1))
		return REASON_SOURCE_GROUP; /* D8 */
	if (UNLIKELY(mac_zero(f->facts->src)))
		return REASON_SOURCE_ZERO;
	return REASON_NONE;
}

/* A port that is blocked because of a loop still reports the probes that come in through it. */
INLINE enum reason blocked_reason(struct frame *f)
{
	if (!(f->in->rules & RULE_LOOP_BLOCKED))
		return REASON_PORT_BLOCKED; /* S41 */
	looks_for_loop(f);
	return REASON_LOOP_BLOCKED;
}

/* The rule that would allow a port to send this frame to a link control address; 0 = no rule does (spanning tree has
 * its own). A second tag hides the type. */
INLINE u32 link_control_rule(const struct frame *f)
{
	if (f->facts->dst[1] == 0x00)
		return RULE_PASS_CDP;
	switch (f->facts->type) {
	case TYPE_SLOW:
		return f->facts->dst[5] == 0x02 ? RULE_PASS_LACP : 0;
	case TYPE_LLDP:
		return f->facts->dst[5] == 0x0e || f->facts->dst[5] == 0x03 ? RULE_PASS_LLDP : 0;
	case TYPE_EAPOL:
		return RULE_PASS_EAPOL;
	case TYPE_PTP:
		return f->facts->dst[5] == 0x0e ? RULE_PASS_PTP : 0;
	}
	return 0;
}

INLINE enum reason admit_link_control(const struct frame *f)
{
	const struct port *p = f->in;

	if (is_spanning_tree(f->facts->dst))
		return p->flags & SWITCH_BLOCKS_BPDU && !(p->rules & RULE_PASS_BPDU) ? REASON_GUEST_BPDU
										     : REASON_NONE; /* S36 */
	return p->rules & link_control_rule(f) ? REASON_NONE : REASON_GUEST_LINK_CONTROL; /* S97 */
}

INLINE enum reason admit_port(struct frame *f)
{
	struct port *p = f->in;
	enum reason why;

	if (UNLIKELY(p->flags & PORT_BLOCKED))
		return blocked_reason(f);
	why = source_reason(f);
	if (why)
		return why;
	if (f->facts->class != CLASS_UNICAST) {
		if (f->facts->class == CLASS_MULTICAST && is_link_control(f->facts->dst)) {
			why = admit_link_control(f);
			if (why)
				return why;
		}
		if (looks_for_loop(f))
			return REASON_LOOP_BLOCKED;
	}
	if (!(p->flags & PORT_FORGED_OK) && (!mac_equal(f->facts->src, p->mac)))
		return REASON_FORGED_TRANSMIT; /* S1 */
	if (f->facts->l3_length > p->switch_mtu)
		return REASON_MTU_EXCEEDED;
	if (UNLIKELY(p->rules & RULES_GUARD))
		return guard(f);
	return REASON_NONE;
}

/* Sets to_host for frames that the host's own stack would receive (S96). *only_host: the frame is only for the host. */
INLINE enum reason admit_uplink(struct frame *f, bool *only_host)
{
	enum reason why = source_reason(f);

	if (why)
		return why;
	f->facts->to_host = f->facts->class != CLASS_UNICAST || mac_equal(f->facts->dst, f->in->mac);
	if (f->facts->class == CLASS_MULTICAST && is_link_control(f->facts->dst)) {
		*only_host = true; /* S37 */
		return REASON_NONE;
	}
	if (UNLIKELY(f->in->flags & PORT_BLOCKED))
		return REASON_PORT_BLOCKED;
	if (f->facts->class == CLASS_BROADCAST && looks_for_loop(f))
		return REASON_LOOP_BLOCKED;
	if (f->facts->l3_length > f->in->switch_mtu)
		return REASON_MTU_EXCEEDED;
	return REASON_NONE;
}
