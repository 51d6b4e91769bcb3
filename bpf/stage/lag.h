/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Which member of a LAG carries a frame (frame-rules §4, S52): a hash of addresses, VID and ports by the LAG's own settings. Off
 * the way of everything that stays on the host. */
#pragma once
#include "stage/classify.h"

enum ip {
	IPV4_HEADER = 20,
	IPV4_NOT_WHOLE = 0x3fff, /* more fragments, and the offset */
	IPV6_HEADER = 40,
	PROTOCOL_TCP = 6,
	PROTOCOL_UDP = 17,
	PROTOCOL_SCTP = 132,
};

struct ipv4 {
	u8 version_words; /* version, and the header's length in words */
	u8 tos;
	be16 length;
	be16 id;
	be16 fragment;
	u8 ttl;
	u8 protocol;
	be16 checksum;
	be32 address[2];
};

struct ipv6 {
	be32 flow;
	be16 length;
	u8 next;
	u8 hops;
	be32 address[8];
};

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

INLINE bool has_ports(u8 protocol)
{
	return protocol == PROTOCOL_TCP || protocol == PROTOCOL_UDP || protocol == PROTOCOL_SCTP;
}

/* What a frame's addresses come to, and where its ports are. */
struct flow_hash {
	u32 x;
	u32 ports; /* offset, 0 = it has none */
};

/* Reads the frame without its outermost tag, which is beside it. False for anything but IP. */
INLINE bool hash_ip(struct __sk_buff *skb, u32 type, struct flow_hash *h)
{
	if (type == TYPE_IPV4) {
		struct ipv4 ip;
		u32 header;

		if (bpf_skb_load_bytes(skb, ETH_HEADER, &ip, sizeof(ip)))
			return false;
		header = (ip.version_words & 15) * 4;
		if (has_ports(ip.protocol) && !(NTOHS(ip.fragment) & IPV4_NOT_WHOLE) && header >= IPV4_HEADER)
			h->ports = ETH_HEADER + header;
		h->x = hash_words(0, ip.address, 2);
		return true;
	}
	if (type == TYPE_IPV6) {
		struct ipv6 ip;

		if (bpf_skb_load_bytes(skb, ETH_HEADER, &ip, sizeof(ip)))
			return false;
		if (has_ports(ip.next))
			h->ports = ETH_HEADER + IPV6_HEADER;
		h->x = hash_words(0, ip.address, 8);
		return true;
	}
	return false;
}

INLINE u32 hash_macs(struct __sk_buff *skb)
{
	be32 words[3];

	return bpf_skb_load_bytes(skb, 0, words, sizeof(words)) ? 0 : hash_words(0, words, 3);
}

/* The uplink of a LAG that carries the frame, whose outermost tag is beside it. A function of its own to the verifier, which looks
 * at it once and not on every path that leads here. */
SEPARATE u32 lag_member(struct __sk_buff *skb, u32 half, u32 choice, u32 segment, u32 type)
{
	u32 i = (half & 1) * MAX_TEAMS + (choice & LAG_MEMBERS);
	struct flow_hash h = { 0 };
	struct team *t;
	be32 ports;

	if (!(choice & LAG_HASH_IP) || !hash_ip(skb, type, &h))
		h.x = hash_macs(skb);
	if (choice & LAG_HASH_VLAN)
		h.x = hash_word(h.x, __builtin_bswap32(segment & VID_MASK));
	if (choice & LAG_HASH_PORT && h.ports && !bpf_skb_load_bytes(skb, h.ports, &ports, sizeof(ports)))
		h.x = hash_word(h.x, ports);
	t = bpf_map_lookup_elem(&teams, &i);
	return t ? t->uplink[(h.x * 0x85ebca6b) >> 24] : 0;
}
