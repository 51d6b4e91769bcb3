/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The recording build of the tunnel's programs: a run begins with what this table says, and writes into it what it would
 * have sent, or why it would not. */
#pragma once
#include "overlay/tables.h"
#include "core/frame.h"

enum crossing_limits { MAX_CROSSING_COPIES = 64 };

struct crossing_copy {
	u32 endpoint; /* number; 0 = a copy that was refused */
	u32 vni;
	u32 tos;
	u32 own; /* number among this host's endpoints of that family */
	u32 reason; /* enum reason, of a refused copy */
	u32 to; /* number of the endpoint that a refused copy was for; 0 = none */
};

struct crossing_record {
	be32 from[4]; /* in: the outer source of a frame from the tunnel */
	u32 vni;
	u32 sender; /* in: slot of the port from which the frame is that leaves, 0 = none of this host's */
	u32 slot; /* in: of the tunnel */
	u32 count; /* out: copies */
	u32 reason; /* out: enum reason, of a whole frame */
	u32 passed; /* out: to the switch program */
	u32 tci; /* of the tag beside it: in, and out for one that arrived */
	u32 tag; /* in: type of the tag beside it, 0 = none */
	u32 answered; /* out: the frame became an answer to its sender: 1 = an ICMP error, 2 = who has an address */
	u32 reserved;
	struct crossing_copy copy[MAX_CROSSING_COPIES];
};

struct {
	MAP_UINT(type, MAP_ARRAY);
	MAP_UINT(max_entries, 1);
	MAP_UINT(map_flags, MAP_MMAPABLE);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct crossing_record);
} crossing_record SEC(".maps");

INLINE struct crossing_record *recorded_crossing(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&crossing_record, &zero);
}

INLINE void record_crossing(const struct crossing *c, u32 endpoint, u32 own, u32 reason)
{
	struct crossing_record *r = recorded_crossing();
	u32 i;

	if (!r)
		return;
	i = r->count++;
	if (i >= MAX_CROSSING_COPIES)
		return;
	r->copy[i].endpoint = reason ? 0 : endpoint;
	r->copy[i].to = endpoint;
	r->copy[i].vni = c->key.vni;
	r->copy[i].tos = c->tos;
	r->copy[i].own = own;
	r->copy[i].reason = reason;
}
