/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The way back: what the tunnel's program answers a port of this host goes to the receiving side of the tunnel's device
 * as if it had come from there, so that the switch program hands it to the port with all its policies. */
#pragma once
#include "overlay/count.h"

/* Of a frame that the tunnel's program made itself: it has no outer header, and nothing is learned from it. */
enum { MARK_ANSWER = 0x48644c62 };

/* The slot of the port from which the frame came that leaves; 0 = none of this host's. */
INLINE u32 sender_of(struct __sk_buff *skb)
{
	if (recording) {
		struct crossing_record *r = recorded_crossing();

		return r ? r->sender : 0;
	}
	return slot_of(skb->ingress_ifindex);
}

/* Hands back an answer that stands in the frame, in the segment in which the frame left. */
INLINE s32 hand_back(struct __sk_buff *skb, struct crossing *c)
{
	if (skb->vlan_present && bpf_skb_vlan_pop(skb))
		return VERDICT_DROP;
	if (recording) {
		struct crossing_record *r = recorded_crossing();

		if (r)
			r->answered = 1;
		return VERDICT_DROP;
	}
	if (bpf_skb_vlan_push(skb, HTONS(TYPE_VLAN), c->tci))
		return VERDICT_DROP;
	skb->mark = MARK_ANSWER;
	return bpf_redirect(skb->ifindex, REDIRECT_INGRESS);
}
