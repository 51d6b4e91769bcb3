/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What the tunnel's programs count: at the tunnel's slot, in the switch program's tables. */
#pragma once
#include "overlay/capture.h"

INLINE struct rare_counters *rare_of(u32 slot)
{
	return bpf_map_lookup_elem(&rare_counts, &slot);
}

/* A frame from the tunnel that does not get as far as the switch program, which would have counted it. */
INLINE s32 drop_arrived(struct __sk_buff *skb, struct crossing *c, u32 why)
{
	struct counters *n = counters_of(c->slot);
	struct rare_counters *rare = rare_of(c->slot);
	u32 class = c->mac[0] & 1 ? CLASS_MULTICAST : CLASS_UNICAST;
	u32 i = why - REASONS_PER_CPU;

	capture_arrived(skb, c->slot, why);
	if (recording) {
		struct crossing_record *r = recorded_crossing();

		if (r)
			r->reason = why;
	}
	if (class && *(u32 *)c->mac == 0xffffffff && *(u16 *)(c->mac + 4) == 0xffff)
		class = CLASS_BROADCAST;
	if (n) {
		n->packets_in[class]++;
		n->bytes_in[class] += c->bytes;
	}
	if (why < REASONS_PER_CPU) {
		if (n)
			n->drops[why]++;
	} else if (rare && i < REASONS_RARE) {
		__sync_fetch_and_add(&rare->drops[i], 1);
	}
	return VERDICT_DROP;
}

/* Counts a copy that the switch program handed to the tunnel and that the tunnel does not send. */
INLINE s32 count_refusal(struct crossing *c, u32 endpoint, u32 why)
{
	struct counters *n = counters_of(c->slot);
	struct rare_counters *rare = rare_of(c->slot);
	u32 i = why - REASONS_PER_CPU;

	c->refused = why;
	if (recording)
		record_crossing(c, endpoint, 0, why);
	if (why < REASONS_PER_CPU) {
		if (n)
			n->refused[why]++;
	} else if (rare && i < REASONS_RARE) {
		__sync_fetch_and_add(&rare->refused[i], 1);
	}
	return VERDICT_DROP;
}

INLINE s32 refuse_leaving(struct __sk_buff *skb, struct crossing *c, u32 endpoint, u32 why)
{
	capture_left(skb, endpoint, why);
	return count_refusal(c, endpoint, why);
}
