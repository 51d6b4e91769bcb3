/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Where `heddle capture` looks at the frames of a tunnel: each copy with the endpoint it is for, what arrives with the
 * endpoint it is from, and what these programs drop or answer. The switch program shows the tunnel's frames only where it
 * drops them itself.
 *
 * A frame is shown as it is inside its VNI. Only the capturing build does this (capture/capture.h). */
#pragma once
#include "overlay/record.h"
#ifdef CAPTURING
#include "capture/copy.h"
enum { capturing = 1 };

_Static_assert((int)MAX_OVERLAY_SEGMENTS <= (int)CAPTURE_SEGMENTS, "a capture knows every overlay segment");

/* A segment as captures name it, by its number in the switch of the tunnel. */
INLINE u32 captured_segment(u32 slot, u32 number)
{
	struct control *ctl = plan_in_force();
	struct port *p = ctl ? port_at(ctl->generation & 1, slot) : 0;

	return p ? (p->switch_id + 1U) << SEGMENT_SWITCH_SHIFT | (number & VID_MASK) : 0;
}

INLINE void captured_address(be32 *to, const u32 *address, bool ipv6)
{
	if (ipv6) {
		__builtin_memcpy(to, address, 16);
		return;
	}
	to[2] = __builtin_bswap32(0xffff);
	to[3] = address[0];
}

/* A frame that leaves in the segment at c->at, for an endpoint or none: handed to the device, or refused. */
SEPARATE s32 capture_left(struct __sk_buff *skb, u32 endpoint, u32 why)
{
	struct endpoint *e = endpoint ? bpf_map_lookup_elem(&endpoints, &endpoint) : 0;
	u32 stage = why ? CAPTURE_DROP : CAPTURE_DELIVER, flags = CAPTURE_COPY, from = slot_of(skb->ingress_ifindex);
	struct capture_scratch *s = capture_scratch_of_cpu();
	struct crossing *c = crossing_of_cpu();
	struct overlay_segment *in;
	struct capture_outer *o;

	if (!c || !s)
		return 0;
	in = bpf_map_lookup_elem(&overlay_segments, &c->at.segment);
	s->tag = shown_tag(skb, c->numbered, in ? in->vlan : 0);
	o = &s->record.outer;
	__builtin_memset(o, 0, sizeof(*o));
	o->vni = in ? in->vni : 0;
	if (e)
		captured_address(o->remote, e->address, e->flags & ENDPOINT_IPV6);
	if (!why && e && e->flags & ENDPOINT_IPV6)
		captured_address(o->local, c->key.local, true);
	else if (!why)
		captured_address(o->local, (u32[]){ __builtin_bswap32(c->key.local[0]) }, false);
	if (!from) { /* the agent's own */
		flags |= CAPTURE_FROM_HOST;
		from = c->slot;
	}
	return capture_for_all(skb, capture_what(stage, c->slot, from, why, flags),
			       in ? captured_segment(c->slot, c->at.segment) : 0);
}

/* The outer header of a frame that arrived, and the number of the frame's segment; 0 = none. */
INLINE u32 capture_key(struct __sk_buff *skb, u32 slot, struct capture_outer *o)
{
	struct segment_name name = { .slot = slot, .vlan = skb->vlan_present ? skb->vlan_tci & VID_MASK : 0 };
	struct tunnel_key k = {};
	u32 *number;

	if (!bpf_skb_get_tunnel_key(skb, &k, sizeof(k), 0)) {
		captured_address(o->remote, (u32[]){ __builtin_bswap32(k.remote[0]) }, false);
		captured_address(o->local, (u32[]){ __builtin_bswap32(k.local[0]) }, false);
	} else if (!bpf_skb_get_tunnel_key(skb, &k, sizeof(k), KEY_IPV6)) {
		captured_address(o->remote, k.remote, true);
		captured_address(o->local, k.local, true);
	}
	name.vni = o->vni = k.vni;
	number = bpf_map_lookup_elem(&overlay_numbers, &name);
	return number ? *number & VID_MASK : 0;
}

/* A frame that came from the tunnel at slot: it enters, or is dropped. */
SEPARATE s32 capture_arrived(struct __sk_buff *skb, u32 slot, u32 why)
{
	struct capture_scratch *s = capture_scratch_of_cpu();
	u32 number;

	if (!s)
		return 0;
	s->tag = shown_tag(skb, false, 0);
	__builtin_memset(&s->record.outer, 0, sizeof(s->record.outer));
	number = capture_key(skb, slot, &s->record.outer);
	if (!why && s->record.outer.vni == VNI_OF_PROBES)
		return 0; /* the agent's, not a guest's */
	return capture_for_all(skb, capture_what(why ? CAPTURE_DROP : CAPTURE_ADMIT, slot, 0, why, 0),
			       number ? captured_segment(slot, number) : 0);
}

/* An answer of the tunnel's program, on its way to a port of this host. */
SEPARATE s32 capture_made(struct __sk_buff *skb)
{
	u32 slot = slot_of(skb->ifindex), at = slot << 16 | (skb->vlan_tci & VID_MASK);
	struct overlay_segment *in = bpf_map_lookup_elem(&overlay_segments, &at);
	struct capture_scratch *s = capture_scratch_of_cpu();

	if (!s)
		return 0;
	s->tag = shown_tag(skb, true, in ? in->vlan : 0);
	__builtin_memset(&s->record.outer, 0, sizeof(s->record.outer));
	s->record.outer.vni = in ? in->vni : 0;
	return capture_for_all(skb, capture_what(CAPTURE_ADMIT, slot, 0, 0, CAPTURE_MADE),
			       in ? captured_segment(slot, at) : 0);
}
#else
enum { capturing = 0 };
INLINE s32 capture_left(struct __sk_buff *skb, u32 endpoint, u32 why)
{
	return 0;
}

INLINE s32 capture_arrived(struct __sk_buff *skb, u32 slot, u32 why)
{
	return 0;
}

INLINE s32 capture_made(struct __sk_buff *skb)
{
	return 0;
}
#endif
