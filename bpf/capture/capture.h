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
#else
#include "capture/record.h"
enum { capturing = 0 };
INLINE s32 capture(struct __sk_buff *skb, u64 what, u32 segment)
{
	return 0;
}
#endif

INLINE u64 capture_what(u32 stage, u32 slot, u32 other, u32 reason, u32 flags)
{
	return (slot & 0xffff) | (u64)(other & 0xffff) << 16 | (u64)stage << 32 | (u64)reason << 40 | (u64)flags << 48;
}

INLINE u32 capture_origin(const struct frame *f)
{
	return f->from_host ? CAPTURE_FROM_HOST : 0;
}

/* The frame has entered. Its segment is known if the port accepts it. */
INLINE void capture_admit(struct frame *f, bool readable)
{
	if (!capturing)
		return;
	if (readable)
		classify(f);
	capture(f->skb, capture_what(CAPTURE_ADMIT, f->slot, 0, 0, capture_origin(f)), f->segment);
}

/* A copy is handed to slot or, with CAPTURE_TO_HOST, to the host's stack behind it. */
INLINE void capture_deliver(struct frame *f, u32 slot, u32 flags)
{
	if (capturing)
		capture(f->skb,
			capture_what(CAPTURE_DELIVER, slot, f->slot, 0, flags | capture_origin(f) | CAPTURE_COPY),
			f->segment);
}

/* The frame itself is dropped; it has the tag with which it came. */
INLINE void capture_drop(struct frame *f, u32 why)
{
	if (capturing)
		capture(f->skb, capture_what(CAPTURE_DROP, f->slot, 0, why, capture_origin(f)), f->segment);
}

/* Slot gets no copy. */
INLINE void capture_refusal(struct frame *f, u32 slot, u32 why)
{
	if (capturing)
		capture(f->skb, capture_what(CAPTURE_DROP, slot, f->slot, why, capture_origin(f) | CAPTURE_COPY),
			f->segment);
}
