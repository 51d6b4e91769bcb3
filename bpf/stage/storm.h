/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Storm control: how many frames with many receivers a port may send (frame-rules §4). Only flooding checks it, so
 * that a frame with a known receiver costs nothing.
 *
 * A bucket is one word, so that it is exact on any number of CPUs without a lock: when the last frame passed, and how
 * much of what was spent by then is not yet refilled. A refused frame changes nothing, so a storm costs one read per
 * frame. */
#pragma once
#include "stage/emit.h"

enum { STORM_TRIES = 8 };

/* Spent is in frames × ticks a second, so that each tick refills exactly the rate. */
INLINE u64 storm_bucket_word(u64 now, u64 spent)
{
	return now << 32 | spent;
}

/* Another CPU may have read the clock later than this one. The word's clock wraps around, so a time more than a second
 * ahead is really one long ago. */
INLINE bool storm_is_ahead(u32 now, u32 last)
{
	return last - now - 1 < ticks_per_second;
}

INLINE u64 storm_left_to_make_good(u64 word, u32 now, u64 rate)
{
	u32 last = word >> 32;
	u64 spent = (u32)word;
	u64 good = storm_is_ahead(now, last) ? 0 : (u64)(now - last) * rate;

	return spent > good ? spent - good : 0;
}

/* A frame that the kernel holds whole for segmentation costs as many frames as it will be on the wire, rounded up. */
INLINE u64 storm_cost(struct frame *f)
{
	u32 size = f->skb->gso_size;

	if (size == GSO_ANY_LENGTH)
		return f->skb->gso_segs;
	return size ? f->facts->bare / size + 1 : 1;
}

/* May the frame be flooded? If so, this charges it to the budget. */
NOINLINE u32 storm_allows(struct frame *f)
{
	u32 class = f->facts->class, now = f->facts->now;
	struct storm_bucket *b = bpf_map_lookup_elem(&storm_buckets, &f->facts->slot);
	u64 cost = storm_cost(f) * ticks_per_second;
	u64 rate, depth;

	if (!b || class >= CLASSES)
		return 0;
	rate = f->in->storm_rate[class];
	depth = f->in->storm_depth[class] * ticks_per_second;
	if (!rate)
		return 1;
	for (u32 i = 0; i < STORM_TRIES; i++) {
		u64 word = *(volatile u64 *)&b->word[class];
		u64 spent = storm_left_to_make_good(word, now, rate) + cost;
		u32 last = word >> 32;

		if (spent > depth)
			return 0;
		if (storm_is_ahead(now, last))
			now = last;
		if (__sync_bool_compare_and_swap(&b->word[class], word, storm_bucket_word(now, spent)))
			return 1;
	}
	return 0; /* the loop ends after as many collisions with other CPUs */
}
