/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The second run of a frame that leaves or enters a tunnel: two programs of the tunnel's device, beside the switch
 * program. A host without overlay segments loads none of them, and the switch program is the same on every host. Two
 * more run on the devices of ports that are trunks inside a VNI (overlay/trunk.h).
 *
 *   port ─▶ switch program ─▶ heddle_overlay_out ─▶ VXLAN device ─▶ underlay
 *   underlay ─▶ VXLAN device ─▶ heddle_overlay_in ─▶ switch program ─▶ port */
#include "overlay/arrive.h"
#include "overlay/leave.h"
#include "overlay/trunk.h"

INLINE s32 come_in(struct __sk_buff *skb)
{
	struct crossing *c = crossing_of_cpu();

	if (skb->mark == MARK_ANSWER) {
		skb->mark = 0;
		capture_made(skb);
		return VERDICT_NEXT;
	}
	if (!c)
		return VERDICT_DROP;
	if (is_own_answer(skb, c)) {
		skb->mark = 0;
		capture_made(skb);
		return VERDICT_NEXT;
	}
	c->slot = slot_of(skb->ifindex);
	return c->slot ? arrive(skb, c) : VERDICT_DROP;
}

INLINE s32 go_out(struct __sk_buff *skb)
{
	struct crossing *c = crossing_of_cpu();

	if (skb->mark == MARK_ENCAPSULATED) {
		skb->mark = 0;
		return VERDICT_NEXT;
	}
	if (!c)
		return VERDICT_DROP;
	c->slot = slot_of(skb->ifindex);
	return c->slot ? leave(skb, c) : VERDICT_DROP;
}

/* Attached before the switch program, which goes on with what this one lets pass. */
SEC("tcx/ingress") s32 heddle_overlay_in(struct __sk_buff *skb)
{
	return come_in(skb);
}

SEC("tcx/egress") s32 heddle_overlay_out(struct __sk_buff *skb)
{
	return go_out(skb);
}

/* The same two programs while a capture runs: if there is a stand-in, it takes over the frame (switch.bpf.c). */
struct {
	MAP_UINT(type, MAP_PROG_ARRAY);
	MAP_UINT(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u32);
} in_stand_in SEC(".maps"), out_stand_in SEC(".maps");

SEC("tcx/ingress") s32 heddle_overlay_in_or(struct __sk_buff *skb)
{
	bpf_tail_call(skb, &in_stand_in, 0);
	return come_in(skb);
}

SEC("tcx/egress") s32 heddle_overlay_out_or(struct __sk_buff *skb)
{
	bpf_tail_call(skb, &out_stand_in, 0);
	return go_out(skb);
}

/* Attached to a trunk's device before the switch program. */
SEC("tcx/ingress") s32 heddle_trunk_in(struct __sk_buff *skb)
{
	u32 slot = slot_of(skb->ifindex);
	struct overlay_trunk *t = trunk_of(slot);
	struct crossing *c = crossing_of_cpu();

	if (!t)
		return VERDICT_NEXT;
	if (!c)
		return VERDICT_DROP;
	c->slot = slot;
	return enter_trunk(skb, c, t);
}

SEC("tcx/egress") s32 heddle_trunk_out(struct __sk_buff *skb)
{
	struct overlay_trunk *t = trunk_of(slot_of(skb->ifindex));

	return t && skb->ingress_ifindex ? leave_trunk(skb, t) : VERDICT_NEXT;
}

/* A test run hands over a frame without its outermost tag, which the kernel keeps beside the frame. */
INLINE bool put_tag(struct __sk_buff *skb, const struct crossing_record *r)
{
	if (r->tag == TYPE_VLAN)
		return !bpf_skb_vlan_push(skb, HTONS(TYPE_VLAN), r->tci);
	return !r->tag || !bpf_skb_vlan_push(skb, HTONS(TYPE_VLAN_AD), r->tci);
}

SEC("tcx/ingress") s32 heddle_record_in(struct __sk_buff *skb)
{
	struct crossing *c = crossing_of_cpu();
	struct crossing_record *r = recorded_crossing();

	if (!c || !r || !put_tag(skb, r))
		return VERDICT_DROP;
	c->slot = r->slot;
	return arrive(skb, c);
}

SEC("tcx/egress") s32 heddle_record_out(struct __sk_buff *skb)
{
	struct crossing *c = crossing_of_cpu();
	struct crossing_record *r = recorded_crossing();

	if (!c || !r || !put_tag(skb, r))
		return VERDICT_DROP;
	c->slot = r->slot;
	return leave(skb, c);
}

SEC("tcx/ingress") s32 heddle_record_trunk_in(struct __sk_buff *skb)
{
	struct crossing *c = crossing_of_cpu();
	struct crossing_record *r = recorded_crossing();
	struct overlay_trunk *t = r ? trunk_of(r->slot) : 0;

	if (!c || !t || !put_tag(skb, r))
		return VERDICT_DROP;
	c->slot = r->slot;
	return record_tag(skb, r, enter_trunk(skb, c, t));
}

SEC("tcx/egress") s32 heddle_record_trunk_out(struct __sk_buff *skb)
{
	struct crossing_record *r = recorded_crossing();
	struct overlay_trunk *t = r ? trunk_of(r->slot) : 0;

	if (!t || !put_tag(skb, r))
		return VERDICT_DROP;
	return record_tag(skb, r, leave_trunk(skb, t));
}

char _license[] SEC("license") = "Dual BSD/GPL";
