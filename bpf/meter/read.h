/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Which flow a frame belongs to, and the packets it stands for (frame-rules §9). The outermost tag is beside the frame. */
#pragma once
#include "stage/lag.h"
#include "meter/begin.h"

enum meter_headers {
	MAX_EXTENSIONS = 8,
	FRAGMENT_OFFSET4 = 0x1fff,
	FRAGMENT_OFFSET6 = 0xfff8,
	GSO_BY_FRAGMENTS = 0xffff, /* in place of a size: packets of any length */
	TCP_FLAGS = 0x0fff,
};

enum more_protocols {
	PROTOCOL_HOP_BY_HOP = 0,
	PROTOCOL_ICMP = 1,
	PROTOCOL_DCCP = 33,
	PROTOCOL_ROUTING = 43,
	PROTOCOL_FRAGMENT = 44,
	PROTOCOL_AUTHENTICATION = 51,
	PROTOCOL_ICMPV6 = 58,
	PROTOCOL_DESTINATION_OPTIONS = 60,
	PROTOCOL_MOBILITY = 135,
	PROTOCOL_UDP_LITE = 136,
	PROTOCOL_HIP = 139,
	PROTOCOL_SHIM6 = 140,
};

/* The packets: l3 is where layer 3 begins, length what there is of it without padding, headers what each packet repeats of it. */
INLINE void meter_lengths(struct __sk_buff *skb, struct meter_scratch *s, u32 l3, u32 length, u32 headers)
{
	u32 size = skb->gso_size, n = skb->gso_segs, payload;

	s->packets = 1;
	s->last_bytes = length;
	s->last_frame_bytes = skb->len;
	if (LIKELY(!size) || skb->len <= l3 + headers)
		return;
	payload = skb->len - l3 - headers;
	if (!n)
		n = size == GSO_BY_FRAGMENTS ? 1 : (payload - 1) / size + 1;
	if ((u64)(n - 1) * size >= payload || (u64)n * size < payload)
		size = payload /
		       n; /* they are of different lengths, or headers within are repeated as well: on average */
	s->packets = n;
	s->bytes = headers + size;
	s->last_bytes = headers + payload - (n - 1) * size;
	s->frame_bytes = l3 + s->bytes;
	s->last_frame_bytes = l3 + s->last_bytes;
}

/* The common frame: TCP or UDP in IPv4 without options and not in fragments. false = it is not one. */
INLINE bool meter_read_ipv4(struct __sk_buff *skb, struct meter_scratch *s, const u8 *p, const u8 *end)
{
	const u8 *ip = p + ETH_HEADER, *l4 = ip + IPV4_HEADER;
	u32 length, headers = IPV4_HEADER + 8;

	if (l4 + 8 > end || *ip != 0x45 || *(be16 *)(ip + 6) & HTONS(IPV4_NOT_WHOLE))
		return false;
	length = NTOHS(*(be16 *)(ip + 2));
	if (length < IPV4_HEADER + 8 || length > skb->len - ETH_HEADER)
		return false;
	s->tcp_flags = 0;
	if (ip[9] == PROTOCOL_TCP) {
		if (l4 + 20 > end || length < IPV4_HEADER + 20)
			return false;
		s->tcp_flags = NTOHS(*(be16 *)(l4 + 12)) & TCP_FLAGS;
		headers = IPV4_HEADER + (l4[12] >> 4) * 4;
	} else if (ip[9] != PROTOCOL_UDP) {
		return false;
	}
	s->wide = 0;
	s->tos = ip[1];
	s->ttl = ip[8];
	/* Words as long as they are compared in: the look-up would wait for parts of one to be written. */
	*(u32 *)s->key.macs = *(u32 *)p;
	*(u64 *)(s->key.macs + 4) = *(u64 *)(p + 4);
	*(u64 *)s->key.addresses = *(u64 *)(ip + 12);
	*(u64 *)s->key.ports = *(u32 *)l4 | (u64)ip[9] << 32;
	if (skb->gso_size)
		length = skb->len - ETH_HEADER;
	meter_lengths(skb, s, ETH_HEADER, length, headers);
	return true;
}

/* The same in IPv6 without extension headers. */
INLINE bool meter_read_ipv6(struct __sk_buff *skb, struct meter_scratch *s, const u8 *p, const u8 *end)
{
	const u8 *ip = p + ETH_HEADER, *l4 = ip + IPV6_HEADER;
	u32 length, headers = IPV6_HEADER + 8;

	if (l4 + 8 > end || *ip >> 4 != 6)
		return false;
	length = IPV6_HEADER + NTOHS(*(be16 *)(ip + 4));
	if (length < IPV6_HEADER + 8 || length > skb->len - ETH_HEADER)
		return false;
	s->tcp_flags = 0;
	if (ip[6] == PROTOCOL_TCP) {
		if (l4 + 20 > end || length < IPV6_HEADER + 20)
			return false;
		s->tcp_flags = NTOHS(*(be16 *)(l4 + 12)) & TCP_FLAGS;
		headers = IPV6_HEADER + (l4[12] >> 4) * 4;
	} else if (ip[6] != PROTOCOL_UDP) {
		return false;
	}
	s->wide = 1;
	s->tos = ip[0] << 4 | ip[1] >> 4;
	s->ttl = ip[7];
	*(u32 *)s->wide_key.macs = *(u32 *)p;
	*(u64 *)(s->wide_key.macs + 4) = *(u64 *)(p + 4);
	for (u32 i = 0; i < 32; i += 8)
		*(u64 *)(s->wide_key.addresses + i) = *(u64 *)(ip + 8 + i);
	*(u64 *)s->wide_key.ports = *(u32 *)l4 | (u64)(TYPE_IPV6 | ip[6] << 16) << 32;
	if (skb->gso_size)
		length = skb->len - ETH_HEADER;
	meter_lengths(skb, s, ETH_HEADER, length, headers);
	return true;
}

/* Layer 4, as far as it is in the packet: room is how much of it there is. Returns the length of its header, or 0. */
INLINE u32 meter_read_l4(struct __sk_buff *skb, struct meter_scratch *s, u8 *ports, u32 protocol, u32 at, u32 room)
{
	u8 *b = s->head;

	if (protocol == PROTOCOL_TCP || protocol == PROTOCOL_UDP || protocol == PROTOCOL_UDP_LITE ||
	    protocol == PROTOCOL_SCTP || protocol == PROTOCOL_DCCP) {
		if (room < 4 || bpf_skb_load_bytes(skb, at, ports, 4))
			return 0;
		if (protocol == PROTOCOL_SCTP)
			return 12;
		if (protocol != PROTOCOL_TCP)
			return protocol == PROTOCOL_DCCP ? 0 : 8;
		if (room < 14 || bpf_skb_load_bytes(skb, at + 12, b, 2))
			return 0;
		s->tcp_flags = (b[0] << 8 | b[1]) & TCP_FLAGS;
		return (b[0] >> 4) * 4;
	}
	if (protocol == (s->wide ? PROTOCOL_ICMPV6 : PROTOCOL_ICMP) && room >= 2)
		bpf_skb_load_bytes(skb, at, ports + 2, 2);
	return 0;
}

/* IPv4 in general. false = there is no whole header. */
INLINE bool meter_parse_ipv4(struct __sk_buff *skb, struct meter_scratch *s, u32 l3)
{
	u32 there = skb->len - l3, length, header, fragment, l4 = 0;
	u8 *ip = s->head;

	if (there < IPV4_HEADER || bpf_skb_load_bytes(skb, l3, ip, IPV4_HEADER))
		return false;
	header = (ip[0] & 15) * 4;
	if (ip[0] >> 4 != 4 || header < IPV4_HEADER || header > there)
		return false;
	length = ip[2] << 8 | ip[3];
	if (length < header || length > there || skb->gso_size)
		length = there;
	s->wide = 0;
	s->tos = ip[1];
	s->ttl = ip[8];
	copy_words(s->key.addresses, ip + 12, 2);
	*(u32 *)s->key.ports = 0;
	s->key.protocol = ip[9];
	fragment = (ip[6] << 8 | ip[7]) & FRAGMENT_OFFSET4;
	if (!fragment)
		l4 = meter_read_l4(skb, s, s->key.ports, ip[9], l3 + header, length - header);
	meter_lengths(skb, s, l3, length, header + l4);
	return true;
}

INLINE bool is_extension(u32 protocol)
{
	return protocol == PROTOCOL_HOP_BY_HOP || protocol == PROTOCOL_ROUTING || protocol == PROTOCOL_FRAGMENT ||
	       protocol == PROTOCOL_AUTHENTICATION || protocol == PROTOCOL_DESTINATION_OPTIONS ||
	       protocol == PROTOCOL_MOBILITY || protocol == PROTOCOL_HIP || protocol == PROTOCOL_SHIM6;
}

/* One extension header; false = there is none, or it is cut short. */
INLINE bool meter_step(struct __sk_buff *skb, struct meter_scratch *s, u32 l3)
{
	struct meter_chain *c = &s->chain;
	u32 was = c->protocol;
	u8 *b = s->head;

	if (!is_extension(was) || c->later || c->at + 8 > c->end || bpf_skb_load_bytes(skb, l3 + c->at, b, 4))
		return false;
	c->protocol = b[0];
	if (was == PROTOCOL_FRAGMENT) {
		c->later = (b[2] << 8 | b[3]) & FRAGMENT_OFFSET6;
		c->at += 8;
	} else if (was == PROTOCOL_AUTHENTICATION) {
		c->at += (b[1] + 2) * 4;
	} else {
		c->at += (b[1] + 1) * 8;
	}
	return true;
}

/* IPv6 in general. */
INLINE bool meter_parse_ipv6(struct __sk_buff *skb, struct meter_scratch *s, u32 l3)
{
	u32 there = skb->len - l3, length, l4 = 0;
	struct meter_chain *c = &s->chain;
	u8 *ip = s->head;

	if (there < IPV6_HEADER || bpf_skb_load_bytes(skb, l3, ip, 8) || ip[0] >> 4 != 6)
		return false;
	if (bpf_skb_load_bytes(skb, l3 + 8, s->wide_key.addresses, 32))
		return false;
	length = IPV6_HEADER + (ip[4] << 8 | ip[5]);
	if (length == IPV6_HEADER || length > there || skb->gso_size)
		length = there;
	s->tos = ip[0] << 4 | ip[1] >> 4;
	s->ttl = ip[7];
	c->at = IPV6_HEADER;
	c->later = 0;
	c->end = length;
	c->protocol = ip[6];
	for (u32 i = 0; i < MAX_EXTENSIONS; i++)
		if (!meter_step(skb, s, l3))
			break;
	s->wide_key.protocol = c->protocol;
	if (!c->later && c->at <= length)
		l4 = meter_read_l4(skb, s, s->wide_key.ports, c->protocol, l3 + c->at, length - c->at);
	else if (c->at > length)
		c->at = length;
	meter_lengths(skb, s, l3, length, c->at + l4);
	return true;
}

/* Any frame. Verified by itself, so that its paths do not multiply with those of the switch. */
SEPARATE u32 meter_parse(struct __sk_buff *skb)
{
	struct meter_scratch *s = meter_scratch_of_cpu();
	u32 l3 = ETH_HEADER, type;
	be16 word = 0;

	if (!s || bpf_skb_load_bytes(skb, 0, s->wide_key.macs, 12) || bpf_skb_load_bytes(skb, 12, &word, 2))
		return 0;
	type = NTOHS(word);
	if (is_tag(type) && !bpf_skb_load_bytes(skb, ETH_HEADER + 2, &word, 2)) {
		type = NTOHS(word); /* a second tag is stepped over */
		l3 += TAG;
	}
	s->wide = 1;
	s->tcp_flags = 0;
	__builtin_memset(s->wide_key.addresses, 0, 32);
	*(u32 *)s->wide_key.ports = 0;
	s->wide_key.type = type;
	s->wide_key.protocol = 0;
	if (skb->len < l3)
		return 0; /* malformed, and not here */
	copy_words(s->key.macs, s->wide_key.macs, 3);
	if (type == TYPE_IPV4 && meter_parse_ipv4(skb, s, l3))
		return 1;
	if (type == TYPE_IPV6 && meter_parse_ipv6(skb, s, l3))
		return 1;
	s->tos = 0;
	s->ttl = 0;
	meter_lengths(skb, s, l3, skb->len - l3, 0);
	return 1;
}

/* Reads the frame; false = it is malformed, which is not metered. */
INLINE bool meter_read_any(struct __sk_buff *skb, struct meter_scratch *s)
{
	const u8 *p = (u8 *)(u64)skb->data, *end = (u8 *)(u64)skb->data_end;

	if (LIKELY(p + ETH_HEADER <= end)) {
		u16 type = *(be16 *)(p + 12);

		if (type == HTONS(TYPE_IPV4) && meter_read_ipv4(skb, s, p, end))
			return true;
		if (type == HTONS(TYPE_IPV6) && meter_read_ipv6(skb, s, p, end))
			return true;
	}
	return meter_parse(skb);
}

/* Reads the frame for what meters it on this CPU next. */
SEPARATE u32 meter_read(struct __sk_buff *skb)
{
	struct meter_scratch *s = meter_scratch_of_cpu();

	return s && meter_read_any(skb, s);
}
