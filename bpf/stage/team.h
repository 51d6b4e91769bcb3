/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Which uplink a port's frames use (frame-rules §4). The agent has walked the team's lists; what is left is a choice, or a
 * table of choices by an 8-bit hash. */
#pragma once
#include "stage/lag.h"

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

INLINE u32 team_choice(struct frame *f, const struct port *p, u32 hash)
{
	u32 i = f->half * MAX_TEAMS + p->team;
	struct team *t = bpf_map_lookup_elem(&teams, &i);

	return t ? t->uplink[hash & 255] : 0;
}

INLINE u32 choice_for(struct frame *f)
{
	struct port *p = f->in;

	if (LIKELY(p->team_policy == TEAM_FIXED))
		return p->uplink;
	if (p->team_policy == TEAM_SOURCE_MAC)
		return team_choice(f, p, f->src[5]);
	return team_choice(f, p, ip_hash(f->skb, f->type));
}

/* The uplink the arrival port's frame leaves by, 0 = none usable. */
INLINE u32 uplink_for(struct frame *f)
{
	u32 choice = choice_for(f);

	return UNLIKELY(choice & LAG_CHOICE) ? lag_member(f->skb, f->half, choice, f->segment, f->type) : choice;
}

/* Does receiver r expect this frame from outside on the uplink it came by (§5.4)? Not asked for ip-hash. */
INLINE bool is_own_uplink(struct frame *f, const struct port *r)
{
	u32 choice = r->uplink;

	if (r->team_policy != TEAM_FIXED)
		choice = team_choice(f, r, f->class == CLASS_UNICAST ? f->dst[5] : r->mac[5]);
	return choice == (f->in->uplink ?: f->slot);
}
