/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Memory of the CPU for frames that take a rare way: with several receivers, for guests that speak a link control
 * protocol, or from the host itself. All functions on a path of calls share 512 bytes of stack, so the facts of such
 * a frame lie here instead. */
#pragma once
#include "core/frame.h"
#include "meter/tables.h"

/* A run can begin within another one on the same CPU: a clone goes out through a tunnel, and the outer frame leaves by
 * an uplink with the program of outgoing frames. The kernel drops what is nested in more than 8 transmissions, so a
 * run always finds a place. */
enum { ASIDE_PLACES = 16 };

struct aside_place {
	struct facts facts; /* first: send_clone finds the place by them */
	struct meter_taken taken; /* while a clone is under way */
};

struct aside {
	u32 used; /* places of runs that have not ended */
	u32 reserved;
	struct aside_place places[ASIDE_PLACES];
};

struct {
	MAP_UINT(type, MAP_PERCPU_ARRAY);
	MAP_UINT(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct aside);
} asides SEC(".maps");

/* The CPU's places; 0 = none is left. */
INLINE struct aside *aside_begin(void)
{
	u32 zero = 0;
	struct aside *a = bpf_map_lookup_elem(&asides, &zero);

	return a && a->used < ASIDE_PLACES ? a : 0;
}

/* Takes a place, and puts the frame's facts there: f is the same frame with its facts in it. Each call is followed by
 * one of aside_end. */
INLINE struct frame aside_of(const struct frame *f, struct aside *a)
{
	struct frame there = *f;

	there.facts = &a->places[a->used & (ASIDE_PLACES - 1)].facts;
	*there.facts = *f->facts;
	a->used++;
	return there;
}

/* The run that took the last place has ended. */
INLINE s32 aside_end(struct aside *a, s32 verdict)
{
	a->used--;
	return verdict;
}

INLINE void copy_taken(struct meter_taken *to, const struct meter_taken *from)
{
	__builtin_memcpy(to, from, sizeof(*to));
}

/* Sends a clone of a frame whose facts lie here; 0 = the device took it. A run within this one reads another frame into
 * the memory of the CPU: what is metered of this one is put back, its packet has to be read again. */
INLINE s64 send_clone(struct frame *f, u32 ifindex)
{
	struct aside_place *at = (struct aside_place *)f->facts;
	bool metered = UNLIKELY(f->in->flags & SWITCH_METERS);
	struct meter_scratch *s;
	s64 err;

	if (metered) {
		s = meter_scratch_of_cpu();
		if (s)
			copy_taken(&at->taken, &s->taken);
	}
	err = bpf_clone_redirect(f->skb, ifindex, 0);
	f->facts->packet_known = false;
	if (metered) {
		s = meter_scratch_of_cpu();
		if (s)
			copy_taken(&s->taken, &at->taken);
	}
	return err;
}
