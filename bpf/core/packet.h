/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Layers 3 and 4 of a frame (frame-rules §0, "The packet"). This is their only reader: if a stage had a reader of its
 * own, a crafted frame could show it a different packet than the others see. Nothing is read until a stage asks
 * (packet_of); what was read is kept for the later stages. The outermost tag is beside the frame, and offsets do not
 * count it. */
#pragma once
#include "core/frame.h"

enum ip {
	IPV4_HEADER = 20,
	IPV4_MORE_FRAGMENTS = 0x2000,
	IPV4_OFFSET = 0x1fff,
	IPV6_HEADER = 40,
	IPV6_MORE_FRAGMENTS = 0x0001,
	IPV6_OFFSET = 0xfff8,
	MAX_EXTENSIONS = 8,
	UDP_HEADER = 8,
	SCTP_HEADER = 12,
	TCP_HEADER = 20,
	TCP_FLAGS = 0x0fff,
	TCP_FLAGS_END = 14,
};

enum protocol {
	PROTOCOL_HOP_BY_HOP = 0,
	PROTOCOL_ICMP = 1,
	PROTOCOL_TCP = 6,
	PROTOCOL_UDP = 17,
	PROTOCOL_DCCP = 33,
	PROTOCOL_ROUTING = 43,
	PROTOCOL_FRAGMENT = 44,
	PROTOCOL_AUTHENTICATION = 51,
	PROTOCOL_ICMPV6 = 58,
	PROTOCOL_DESTINATION_OPTIONS = 60,
	PROTOCOL_SCTP = 132,
	PROTOCOL_MOBILITY = 135,
	PROTOCOL_UDP_LITE = 136,
	PROTOCOL_HIP = 139,
	PROTOCOL_SHIM6 = 140,
};

/* Bits of packet.is. */
enum packet_is {
	/* Neither IPv4 nor IPv6: not IP, and only type, l3 and end of the following fields are valid. */
	PACKET_IPV4 = 1 << 0,
	PACKET_IPV6 = 1 << 1,
	PACKET_FRAGMENT = 1 << 2, /* one of several parts */
	PACKET_LATER = 1 << 3, /* not the first fragment: it has no layer 4 */
	PACKET_PORTS = 1 << 4, /* ports are ports */
};

struct packet {
	be32 addresses[8] __attribute__((aligned(8))); /* source, destination: one word each for IPv4, four for IPv6 */
	be32 ports; /* source, destination; for ICMP 0, 0, type, code; else 0 */
	u16 type; /* behind all tags */
	u16 tcp_flags;
	u32 l3; /* offset of the IP header */
	u32 l4; /* offset of what follows it and its extensions */
	u32 payload; /* offset of what follows the layer-4 header, if its length is known; else l4 */
	u32 end; /* where the packet ends; padding may follow */
	u8 is; /* enum packet_is */
	u8 protocol;
	u8 tos;
	u8 ttl;
	u8 head[24]; /* scratch memory: the stack is too small */
};

/* The packet of the frame that this CPU works on. Where packet_of says that it was read before, reading it again costs
 * only the memory access. */
struct {
	MAP_UINT(type, MAP_PERCPU_ARRAY);
	MAP_UINT(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct packet);
} packets SEC(".maps");

INLINE struct packet *packet_of_cpu(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&packets, &zero);
}

/* TCP or UDP: reads the fields that identify a flow; room is the number of bytes of the header in the packet. */
INLINE bool common_l4(struct packet *k, const u8 *l4, const u8 *end, u32 room)
{
	k->payload = k->l4 + UDP_HEADER;
	k->tcp_flags = 0;
	if (k->protocol == PROTOCOL_TCP) {
		if (l4 + TCP_HEADER > end || room < TCP_HEADER)
			return false;
		k->tcp_flags = NTOHS(*(be16 *)(l4 + 12)) & TCP_FLAGS;
		k->payload = k->l4 + (l4[12] >> 4) * 4;
	} else if (k->protocol != PROTOCOL_UDP) {
		return false;
	}
	k->ports = *(be32 *)l4;
	k->is |= PACKET_PORTS;
	return true;
}

/* The common IPv4 packet: without options and not a fragment. Returns false if the packet is of another form. */
INLINE bool common_ipv4(struct __sk_buff *skb, struct packet *k, const u8 *p, const u8 *end)
{
	const u8 *ip = p + ETH_HEADER, *l4 = ip + IPV4_HEADER;
	u32 length;

	if (l4 + UDP_HEADER > end || *ip != 0x45 || *(be16 *)(ip + 6) & HTONS(IPV4_MORE_FRAGMENTS | IPV4_OFFSET))
		return false;
	length = NTOHS(*(be16 *)(ip + 2));
	if (length < IPV4_HEADER + UDP_HEADER || length > skb->len - ETH_HEADER)
		return false;
	k->is = PACKET_IPV4;
	k->type = TYPE_IPV4;
	k->protocol = ip[9];
	k->l3 = ETH_HEADER;
	k->l4 = ETH_HEADER + IPV4_HEADER;
	if (!common_l4(k, l4, end, length - IPV4_HEADER))
		return false;
	k->end = skb->gso_size ? skb->len : ETH_HEADER + length;
	k->tos = ip[1];
	k->ttl = ip[8];
	*(u64 *)k->addresses = *(u64 *)(ip + 12); /* in words of the length in which they are compared */
	return true;
}

/* The common IPv6 packet: without extension headers. */
INLINE bool common_ipv6(struct __sk_buff *skb, struct packet *k, const u8 *p, const u8 *end)
{
	const u8 *ip = p + ETH_HEADER, *l4 = ip + IPV6_HEADER;
	u32 length;

	if (l4 + UDP_HEADER > end || *ip >> 4 != 6)
		return false;
	length = IPV6_HEADER + NTOHS(*(be16 *)(ip + 4));
	if (length < IPV6_HEADER + UDP_HEADER || length > skb->len - ETH_HEADER)
		return false;
	k->is = PACKET_IPV6;
	k->type = TYPE_IPV6;
	k->protocol = ip[6];
	k->l3 = ETH_HEADER;
	k->l4 = ETH_HEADER + IPV6_HEADER;
	if (!common_l4(k, l4, end, length - IPV6_HEADER))
		return false;
	k->end = skb->gso_size ? skb->len : ETH_HEADER + length;
	k->tos = ip[0] << 4 | ip[1] >> 4;
	k->ttl = ip[7];
	for (u32 i = 0; i < 4; i++)
		((u64 *)k->addresses)[i] = ((u64 *)(ip + 8))[i];
	return true;
}

INLINE bool begins_with_ports(u32 protocol)
{
	return protocol == PROTOCOL_TCP || protocol == PROTOCOL_UDP || protocol == PROTOCOL_UDP_LITE ||
	       protocol == PROTOCOL_SCTP || protocol == PROTOCOL_DCCP;
}

/* Length of the layer-4 header; for TCP also reads its flags. */
INLINE u32 l4_header(struct __sk_buff *skb, struct packet *k)
{
	u8 *b = k->head;

	switch (k->protocol) {
	case PROTOCOL_SCTP:
		return SCTP_HEADER;
	case PROTOCOL_UDP:
	case PROTOCOL_UDP_LITE:
		return UDP_HEADER;
	case PROTOCOL_TCP:
		if (k->end - k->l4 < TCP_FLAGS_END || bpf_skb_load_bytes(skb, k->l4 + 12, b, 2))
			return 0;
		k->tcp_flags = (b[0] << 8 | b[1]) & TCP_FLAGS;
		return (b[0] >> 4) * 4;
	}
	return 0;
}

/* Layer 4, as far as it is in the packet. */
INLINE void read_l4(struct __sk_buff *skb, struct packet *k)
{
	u32 room = k->end - k->l4;

	if (begins_with_ports(k->protocol)) {
		if (room < 4 || bpf_skb_load_bytes(skb, k->l4, &k->ports, 4))
			return;
		k->is |= PACKET_PORTS;
		k->payload = k->l4 + l4_header(skb, k);
		return;
	}
	if (k->protocol == (k->is & PACKET_IPV6 ? PROTOCOL_ICMPV6 : PROTOCOL_ICMP) && room >= 2)
		bpf_skb_load_bytes(skb, k->l4, (u8 *)&k->ports + 2, 2);
}

INLINE void read_ipv4(struct __sk_buff *skb, struct packet *k)
{
	u32 there = skb->len - k->l3, length, header, fragment;
	u8 *ip = k->head;

	if (there < IPV4_HEADER || bpf_skb_load_bytes(skb, k->l3, ip, IPV4_HEADER))
		return;
	header = (ip[0] & 15) * 4;
	if (ip[0] >> 4 != 4 || header < IPV4_HEADER || header > there)
		return;
	length = ip[2] << 8 | ip[3];
	if (length >= header && length <= there && !skb->gso_size)
		k->end = k->l3 + length;
	k->is = PACKET_IPV4;
	k->protocol = ip[9];
	k->tos = ip[1];
	k->ttl = ip[8];
	k->addresses[0] = *(be32 *)(ip + 12);
	k->addresses[1] = *(be32 *)(ip + 16);
	k->l4 = k->payload = k->l3 + header;
	fragment = ip[6] << 8 | ip[7];
	if (fragment & (IPV4_MORE_FRAGMENTS | IPV4_OFFSET))
		k->is |= PACKET_FRAGMENT;
	if (fragment & IPV4_OFFSET)
		k->is |= PACKET_LATER;
	else
		read_l4(skb, k);
}

INLINE bool is_extension(u32 protocol)
{
	return protocol == PROTOCOL_HOP_BY_HOP || protocol == PROTOCOL_ROUTING || protocol == PROTOCOL_FRAGMENT ||
	       protocol == PROTOCOL_AUTHENTICATION || protocol == PROTOCOL_DESTINATION_OPTIONS ||
	       protocol == PROTOCOL_MOBILITY || protocol == PROTOCOL_HIP || protocol == PROTOCOL_SHIM6;
}

INLINE void read_fragment(struct packet *k, u32 fragment)
{
	if (fragment & (IPV6_OFFSET | IPV6_MORE_FRAGMENTS))
		k->is |= PACKET_FRAGMENT;
	if (fragment & IPV6_OFFSET)
		k->is |= PACKET_LATER;
}

/* Steps over one extension header; false = there is none, or it is cut short. */
INLINE bool step_over(struct __sk_buff *skb, struct packet *k)
{
	u32 was = k->protocol;
	u8 *b = k->head;

	if (!is_extension(was) || k->is & PACKET_LATER || k->l4 + 8 > k->end || bpf_skb_load_bytes(skb, k->l4, b, 4))
		return false;
	k->protocol = b[0];
	if (was == PROTOCOL_FRAGMENT) {
		read_fragment(k, b[2] << 8 | b[3]);
		k->l4 += 8;
	} else if (was == PROTOCOL_AUTHENTICATION) {
		k->l4 += (b[1] + 2) * 4;
	} else {
		k->l4 += (b[1] + 1) * 8;
	}
	return true;
}

INLINE void read_ipv6(struct __sk_buff *skb, struct packet *k)
{
	u32 there = skb->len - k->l3, length;
	u8 *ip = k->head;

	if (there < IPV6_HEADER || bpf_skb_load_bytes(skb, k->l3, ip, 8) || ip[0] >> 4 != 6)
		return;
	if (bpf_skb_load_bytes(skb, k->l3 + 8, k->addresses, 32))
		return;
	length = IPV6_HEADER + (ip[4] << 8 | ip[5]);
	if (length > IPV6_HEADER && length <= there && !skb->gso_size)
		k->end = k->l3 + length;
	k->is = PACKET_IPV6;
	k->protocol = ip[6];
	k->tos = ip[0] << 4 | ip[1] >> 4;
	k->ttl = ip[7];
	k->l4 = k->l3 + IPV6_HEADER;
	for (u32 i = 0; i < MAX_EXTENSIONS; i++)
		if (!step_over(skb, k))
			break;
	if (k->l4 > k->end)
		k->l4 = k->end;
	k->payload = k->l4;
	if (!(k->is & PACKET_LATER))
		read_l4(skb, k);
}

/* Reads any packet. */
INLINE void read_any(struct __sk_buff *skb, struct packet *k)
{
	be16 word = 0;

	bpf_skb_load_bytes(skb, 12, &word, 2);
	__builtin_memset(k, 0, sizeof(*k));
	k->type = NTOHS(word);
	k->l3 = ETH_HEADER;
	if (is_tag(k->type) && !bpf_skb_load_bytes(skb, ETH_HEADER + 2, &word, 2)) {
		k->type = NTOHS(word); /* a second tag is stepped over */
		k->l3 += TAG;
	}
	k->l4 = k->payload = k->l3;
	k->end = skb->len < k->l3 ? k->l3 : skb->len;
	if (k->type == TYPE_IPV4)
		read_ipv4(skb, k);
	else if (k->type == TYPE_IPV6)
		read_ipv6(skb, k);
}

/* Reads the frame's packet into this CPU's packet record. A function of its own for the verifier, so that its paths do
 * not multiply with those of the switch. */
SEPARATE u32 read_packet(struct __sk_buff *skb)
{
	const u8 *p = (u8 *)(u64)skb->data, *end = (u8 *)(u64)skb->data_end;
	struct packet *k = packet_of_cpu();

	if (!k)
		return 0;
	if (LIKELY(p + ETH_HEADER <= end)) {
		u16 type = *(be16 *)(p + 12);

		if (type == HTONS(TYPE_IPV4) && common_ipv4(skb, k, p, end))
			return 0;
		if (type == HTONS(TYPE_IPV6) && common_ipv6(skb, k, p, end))
			return 0;
	}
	read_any(skb, k);
	return 0;
}

/* Makes sure that packet_of_cpu is the frame's packet. */
INLINE void know_packet(struct frame *f)
{
	if (f->facts->packet_known)
		return;
	read_packet(f->skb);
	f->facts->packet_known = true;
}
