/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The uplink that a port's frames use (frame-rules §4). The agent has evaluated the team's lists; the program only
 * looks up a choice, or one in a table of choices by an 8-bit hash. */
#pragma once
#include "stage/lag.h"

INLINE u32 octet(struct __sk_buff *skb, u32 offset)
{
	u8 b = 0;

	bpf_skb_load_bytes(skb, offset, &b, 1);
	return b;
}

INLINE u32 last_byte(be32 word)
{
	return word >> 24; /* in the byte order of memory */
}

/* S46. The packet must be known. Offsets do not count the outermost tag. */
INLINE u32 ip_hash(struct __sk_buff *skb)
{
	struct packet *k = packet_of_cpu();

	if (k && k->is & PACKET_IPV6)
		return last_byte(k->addresses[3]) ^ last_byte(k->addresses[7]);
	if (k && k->is & PACKET_IPV4)
		return last_byte(k->addresses[0]) ^ last_byte(k->addresses[1]);
	return octet(skb, 29) ^ octet(skb, 33);
}

INLINE u32 choice_by(u32 half, u32 team, u32 hash)
{
	u32 i = (half & 1) * MAX_TEAMS + team;
	struct team *t = bpf_map_lookup_elem(&teams, &i);

	return t ? t->uplink[hash & 255] : 0;
}

INLINE u32 team_choice(struct frame *f, const struct port *p, u32 hash)
{
	return choice_by(f->facts->half, p->team, hash);
}

/* A function of its own, like lag_member. */
SEPARATE u32 ip_hash_choice(struct __sk_buff *skb, u32 half, u32 team)
{
	return choice_by(half, team, ip_hash(skb));
}

INLINE u32 choice_for(struct frame *f)
{
	struct port *p = f->in;

	if (LIKELY(p->team_policy == TEAM_FIXED))
		return p->uplink;
	if (p->team_policy == TEAM_SOURCE_MAC)
		return team_choice(f, p, f->facts->src[5]);
	know_packet(f);
	return ip_hash_choice(f->skb, f->facts->half, p->team);
}

/* The uplink by which the arrival port's frame leaves, 0 = none usable. */
INLINE u32 uplink_for(struct frame *f)
{
	u32 choice = choice_for(f);

	if (LIKELY(!(choice & LAG_CHOICE)))
		return choice;
	if (choice & LAG_HASH_IP)
		know_packet(f);
	return lag_member(f->skb, f->facts->half, choice, f->facts->segment);
}

/* Does receiver r expect this frame on the uplink where it came in (§5.4)? Never called for ip-hash. */
INLINE bool is_own_uplink(struct frame *f, const struct port *r)
{
	u32 choice = r->uplink;

	if (r->team_policy != TEAM_FIXED)
		choice = team_choice(f, r, f->facts->class == CLASS_UNICAST ? f->facts->dst[5] : r->mac[5]);
	return choice == (f->in->uplink ?: f->facts->slot);
}
