/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Trunks inside a VNI (frame-rules §10): the tags of a port's owner name VLANs inside, and the switch program knows
 * each of these by its number. Two programs of the port's device turn one into the other, so that the switch program
 * takes the port for a trunk of the numbers.
 *
 *   owner ─▶ heddle_trunk_in ─▶ switch program ─▶ heddle_trunk_out ─▶ owner */
#pragma once
#include "core/segment.h"
#include "overlay/arrive.h"

/* The trunk of the port at a slot; none while the port is about to get it or has lost it. */
INLINE struct overlay_trunk *trunk_of(u32 slot)
{
	return slot ? bpf_map_lookup_elem(&overlay_trunks, &slot) : 0;
}

/* Gives the frame another outermost tag. A pop that uncovers a cut-off second tag reports an error after it has done its
 * work, so its result is ignored: the switch program finds such a frame malformed. */
INLINE bool retag(struct __sk_buff *skb, u32 protocol, u32 tci)
{
	if (skb->vlan_present)
		bpf_skb_vlan_pop(skb);
	return !bpf_skb_vlan_push(skb, HTONS(protocol), tci);
}

INLINE s32 refuse_entering(struct __sk_buff *skb, struct crossing *c, u32 why)
{
	if (bpf_skb_load_bytes(skb, 0, c->mac, 12))
		return VERDICT_DROP;
	c->bytes = skb->len + (skb->vlan_present ? TAG : 0);
	return drop_arrived(skb, c, why);
}

/* A frame of the port's owner gets the tag with the number of its segment. The switch program, which has the numbers of
 * the port's VLANs alone, refuses what is none of them: an untagged frame, one with a tag of 802.1ad, and a VLAN that no
 * port of the VNI has, for which 802.1ad stands. A priority tag may not hide another tag: inside the VNI it is not
 * carried, and the other tag would name the VLAN. */
INLINE s32 enter_trunk(struct __sk_buff *skb, struct crossing *c, const struct overlay_trunk *t)
{
	be16 type = 0;
	u32 tci, vid, *number;

	if (t->flags & TRUNK_CHANGES)
		return refuse_entering(skb, c, REASON_VLAN_NOT_ALLOWED);
	if (bpf_skb_load_bytes(skb, 12, &type, 2))
		return VERDICT_NEXT;
	if (!skb->vlan_present && is_tag(NTOHS(type))) {
		if (!tag_beside(skb, NTOHS(type)) || bpf_skb_load_bytes(skb, 12, &type, 2))
			return VERDICT_NEXT;
	}
	tci = skb->vlan_present ? skb->vlan_tci : 0;
	vid = tci & VID_MASK;
	if (vid && skb->vlan_proto != HTONS(TYPE_VLAN))
		return VERDICT_NEXT;
	if (!vid && (!(t->flags & TRUNK_UNTAGGED) || (skb->vlan_present && is_tag(NTOHS(type)))))
		return VERDICT_NEXT;
	c->name.slot = t->slot;
	c->name.vni = t->vni;
	c->name.vlan = vid;
	number = bpf_map_lookup_elem(&overlay_numbers, &c->name);
	if (!number && !vid)
		return VERDICT_NEXT;
	tci &= TCI_PRIORITY;
	if (!(number ? retag(skb, TYPE_VLAN, tci | (*number & VID_MASK)) : retag(skb, TYPE_VLAN_AD, tci | vid)))
		return refuse_entering(skb, c, REASON_MALFORMED);
	return VERDICT_NEXT;
}

/* A copy for the port's owner gets the tag of its VLAN. A frame without a VLAN that has a second tag keeps a priority
 * tag before it: the owner would take the second one for a VLAN of its trunk. What the host itself sends, as the agent
 * sends its probes for loops, has the owner's tags already. */
INLINE s32 leave_trunk(struct __sk_buff *skb, const struct overlay_trunk *t)
{
	u32 tci = skb->vlan_tci & TCI_PRIORITY, segment = t->slot << 16 | (skb->vlan_tci & VID_MASK);
	struct overlay_segment *s;

	if (t->flags & TRUNK_CHANGES)
		return VERDICT_DROP; /* it was on its way when the change began */
	if (!skb->vlan_present)
		return VERDICT_NEXT;
	s = bpf_map_lookup_elem(&overlay_segments, &segment);
	if (!s || s->vni != t->vni)
		return VERDICT_DROP;
	if (s->vlan)
		return retag(skb, TYPE_VLAN, tci | s->vlan) ? VERDICT_NEXT : VERDICT_DROP;
	bpf_skb_vlan_pop(skb);
	if (skb->vlan_present && bpf_skb_vlan_push(skb, HTONS(TYPE_VLAN), tci))
		return VERDICT_DROP;
	return VERDICT_NEXT;
}

/* What a dry run's frame has become: the tag beside it. */
INLINE s32 record_tag(struct __sk_buff *skb, struct crossing_record *r, s32 verdict)
{
	r->passed = verdict == VERDICT_NEXT;
	r->tag = skb->vlan_present ? NTOHS(skb->vlan_proto) : 0;
	r->tci = skb->vlan_present ? skb->vlan_tci : 0;
	return verdict;
}
