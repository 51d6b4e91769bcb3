/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Which member of a LAG carries a frame (frame-rules §4, S52): a hash of addresses, VID and ports with the LAG's own
 * settings. Traffic that stays on the host never gets here. */
#pragma once
#include "core/packet.h"
#include "stage/classify.h"

INLINE u32 hash_word(u32 x, be32 word)
{
	x = (x ^ __builtin_bswap32(word)) * 0x9e3779b1;
	return x ^ x >> 15;
}

INLINE u32 hash_words(u32 x, const be32 *words, u32 n)
{
	for (u32 i = 0; i < n; i++)
		x = hash_word(x, words[i]);
	return x;
}

INLINE u32 hash_macs(struct __sk_buff *skb)
{
	be32 words[3];

	return bpf_skb_load_bytes(skb, 0, words, sizeof(words)) ? 0 : hash_words(0, words, 3);
}

INLINE u32 hash_addresses(struct __sk_buff *skb, const struct packet *k)
{
	if (k && k->is & PACKET_IPV6)
		return hash_words(0, k->addresses, 8);
	if (k && k->is & PACKET_IPV4)
		return hash_words(0, k->addresses, 2);
	return hash_macs(skb);
}

/* All fragments of a datagram must take one member, so fragments do not contribute their ports. */
INLINE bool hashes_ports(const struct packet *k)
{
	return k && (k->is & (PACKET_PORTS | PACKET_FRAGMENT)) == PACKET_PORTS;
}

/* The uplink of a LAG that carries the frame. If the choice uses the packet, it must be known. The verifier checks this
 * function once, not on every path that leads here. */
SEPARATE u32 lag_member(struct __sk_buff *skb, u32 half, u32 choice, u32 segment)
{
	u32 i = (half & 1) * MAX_TEAMS + (choice & LAG_MEMBERS), x;
	struct packet *k = choice & LAG_HASH_IP ? packet_of_cpu() : 0;
	struct team *t;

	x = hash_addresses(skb, k);
	if (choice & LAG_HASH_VLAN)
		x = hash_word(x, __builtin_bswap32(segment & VID_MASK));
	if (choice & LAG_HASH_PORT && hashes_ports(k))
		x = hash_word(x, k->ports);
	t = bpf_map_lookup_elem(&teams, &i);
	return t ? t->uplink[(x * 0x85ebca6b) >> 24] : 0;
}
