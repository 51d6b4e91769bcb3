/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Where `heddle capture` looks: at frames as they enter, copies as they are handed over, and what is dropped or
 * refused.
 *
 * Only the capturing build (capturing.bpf.c) does this. It is a separate object, not a load-time constant of one
 * object, because the compiler reserves registers around the calls: even if the verifier removed the calls, the live
 * program would still pay for that. The capturing build stands in for the live program while a capture runs, and goes
 * away with the agent (internal/dataplane/capture_build.go). */
#pragma once
#ifdef CAPTURING
#include "capture/copy.h"
enum { capturing = 1 };

/* Does the tunnel's program show what this is about (overlay/capture.h)? It knows the other end. An overlay segment has no
 * other uplink than the tunnel. */
INLINE bool shown_by_tunnel(u64 what, u32 half)
{
	struct port *p = port_at(half, what & 0xffff);

	return (what >> 32 & 0xff) != CAPTURE_DROP && p && p->flags & PORT_UPLINK;
}

/* Takes numbers instead of the frame, so that the frame's record can stay in registers. */
SEPARATE s32 capture(struct __sk_buff *skb, u64 what, u32 segment, u32 half)
{
	u32 *vlan = bpf_map_lookup_elem(&capture_segments, &segment);
	struct capture_scratch *s = capture_scratch_of_cpu();

	if (!s || (vlan && shown_by_tunnel(what, half)))
		return 0;
	s->tag = shown_tag(skb, vlan && (skb->vlan_tci & VID_MASK) == (segment & VID_MASK), vlan ? *vlan : 0);
	__builtin_memset(&s->record.outer, 0, sizeof(s->record.outer));
	return capture_for_all(skb, what, segment);
}
#else
#include "capture/record.h"
enum { capturing = 0 };
INLINE u64 capture_what(u32 stage, u32 slot, u32 other, u32 reason, u32 flags)
{
	return 0;
}

INLINE s32 capture(struct __sk_buff *skb, u64 what, u32 segment, u32 half)
{
	return 0;
}
#endif

INLINE u32 capture_origin(const struct frame *f)
{
	return f->facts->from_host ? CAPTURE_FROM_HOST : 0;
}

/* The frame has entered. Its segment is known if the port accepts it. */
INLINE void capture_admit(struct frame *f, bool readable)
{
	if (!capturing)
		return;
	if (readable)
		classify(f);
	capture(f->skb, capture_what(CAPTURE_ADMIT, f->facts->slot, 0, 0, capture_origin(f)), f->facts->segment,
		f->facts->half);
}

/* A copy is handed to slot or, with CAPTURE_TO_HOST, to the host's stack behind it. */
INLINE void capture_deliver(struct frame *f, u32 slot, u32 flags)
{
	if (capturing)
		capture(f->skb,
			capture_what(CAPTURE_DELIVER, slot, f->facts->slot, 0,
				     flags | capture_origin(f) | CAPTURE_COPY),
			f->facts->segment, f->facts->half);
}

/* The frame itself is dropped; it has the tag with which it came. */
INLINE void capture_drop(struct frame *f, u32 why)
{
	if (capturing)
		capture(f->skb, capture_what(CAPTURE_DROP, f->facts->slot, 0, why, capture_origin(f)),
			f->facts->segment, f->facts->half);
}

/* Slot gets no copy. */
INLINE void capture_refusal(struct frame *f, u32 slot, u32 why)
{
	if (capturing)
		capture(f->skb, capture_what(CAPTURE_DROP, slot, f->facts->slot, why, capture_origin(f) | CAPTURE_COPY),
			f->facts->segment, f->facts->half);
}
