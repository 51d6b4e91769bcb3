/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* `heddle bench frame`: feeds frames from a table into the switch one after another, so that a repeated test run visits
 * many ports and MACs. */
#pragma once
#include "core/frame.h"

struct bench_frame {
	u8 addresses[12]; /* destination, source */
	u32 slot;
	u32 source; /* IPv4 source address, if flows are measured */
	u32 reserved;
};

enum bench_flows {
	BENCH_FLOWS_AS_THEY_ARE = 0,
	BENCH_FLOWS_GIVEN = 1, /* each frame has its source */
	BENCH_FLOWS_NEW = 2, /* no two frames have the same */
};

struct bench_control {
	u32 next;
	u32 frames;
	u32 empty; /* 1: do not enter the switch, to measure the harness itself */
	u32 flows; /* enum bench_flows */
	u32 made; /* sources given to frames so far */
	u32 reserved;
};

struct {
	MAP_UINT(type, MAP_ARRAY);
	MAP_UINT(max_entries, 1);
	MAP_UINT(map_flags, MAP_MMAPABLE);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct bench_control);
} bench_control SEC(".maps");

struct {
	MAP_UINT(type, MAP_ARRAY);
	MAP_UINT(max_entries, 1); /* as many as there are frames */
	MAP_UINT(map_flags, MAP_MMAPABLE);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct bench_frame);
} bench_frames SEC(".maps");

/* Slot of the next frame, whose addresses are written into skb; 0 = do not switch it. */
INLINE u32 bench_next(struct __sk_buff *skb)
{
	u32 zero = 0, i;
	struct bench_control *c = bpf_map_lookup_elem(&bench_control, &zero);
	struct bench_frame *b;

	if (!c)
		return 0;
	i = c->next++;
	if (c->next >= c->frames)
		c->next = 0;
	b = bpf_map_lookup_elem(&bench_frames, &i);
	if (!b || bpf_skb_store_bytes(skb, 0, b->addresses, 12, 0))
		return 0;
	if (c->flows) {
		u32 source = c->flows == BENCH_FLOWS_NEW ? c->made++ : b->source;

		if (bpf_skb_store_bytes(skb, ETH_HEADER + 12, &source, 4, 0))
			return 0;
	}
	return c->empty ? 0 : b->slot;
}
