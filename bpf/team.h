/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Which uplink a port's frames use (frame-rules §4). The agent has walked the team's lists; what is left is a slot, or a
 * table of slots by an 8-bit hash. */
#pragma once
#include "frame.h"

INLINE u32 octet(struct __sk_buff *skb, u32 offset)
{
	u8 b = 0;

	bpf_skb_load_bytes(skb, offset, &b, 1);
	return b;
}

/* S46. Read before any tag of the frame is changed: offsets are those without the outermost tag. */
INLINE u32 ip_hash(struct __sk_buff *skb, u16 type)
{
	if (type == TYPE_IPV6)
		return octet(skb, 37) ^ octet(skb, 53);
	return octet(skb, 29) ^ octet(skb, 33);
}

INLINE u32 team_uplink(struct frame *f, const struct port *p, u32 hash)
{
	u32 i = f->half * MAX_TEAMS + p->team;
	struct team *t = bpf_map_lookup_elem(&teams, &i);

	return t ? t->uplink[hash & 255] : 0;
}

/* The uplink the arrival port's frame leaves by, 0 = none usable. */
INLINE u32 uplink_for(struct frame *f)
{
	struct port *p = f->in;

	if (LIKELY(p->team_policy == TEAM_FIXED))
		return p->uplink;
	if (p->team_policy == TEAM_SOURCE_MAC)
		return team_uplink(f, p, f->src[5]);
	return team_uplink(f, p, ip_hash(f->skb, f->type));
}

/* The one uplink on which receiver r expects this frame from outside (§5.4); not asked for ip-hash. */
INLINE u32 own_uplink(struct frame *f, const struct port *r)
{
	if (r->team_policy == TEAM_FIXED)
		return r->uplink;
	return team_uplink(f, r, f->class == CLASS_UNICAST ? f->dst[5] : r->mac[5]);
}
