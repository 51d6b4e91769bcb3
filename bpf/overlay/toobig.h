/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Tells the sender of a packet that does not fit the tunnel how long packets may be (frame-rules §10): "fragmentation
 * needed" of IPv4 (RFC 1191), "packet too big" of IPv6 (RFC 4443, RFC 8201). The frame itself becomes the error. */
#pragma once
#include "overlay/back.h"
#include "core/packet.h"

enum too_big {
	QUOTE_ROOM = 1280,
	ERROR_IPV4 = 28, /* IP header and ICMP header */
	ERROR_IPV6 = 48,
	IPV4_DONT_FRAGMENT = 0x40,
	TOS_CONTROL = 0xc0, /* RFC 1812 section 4.3.2.5 */
	ICMP_UNREACHABLE = 3,
	ICMP_FRAGMENTATION_NEEDED = 4,
	ICMPV6_TOO_BIG = 2,
	ICMPV6_QUERIES = 128, /* types below are errors */
	ICMPV6_REDIRECT = 137,
	ADJUST_MAC = 1, /* room between the Ethernet header and the packet */
	STORE_CHECKSUM = 1,
};

static s64 (*const bpf_csum_diff)(const void *from, u32 from_size, const void *to, u32 to_size, u32 seed) = (void *)28;
static s64 (*const bpf_skb_adjust_room)(struct __sk_buff *skb, s32 bytes, u32 mode, u64 flags) = (void *)50;

struct quote {
	u8 packet[QUOTE_ROOM]; /* the quoted bytes */
	u8 head[64]; /* Ethernet, IP and ICMP header of the error */
};

struct {
	MAP_UINT(type, MAP_PERCPU_ARRAY);
	MAP_UINT(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct quote);
} quotes SEC(".maps");

/* By slot of the sender: when the last error was sent << 32 | what was not refilled by then, in errors × ticks a
 * second. */
struct {
	MAP_UINT(type, MAP_ARRAY);
	MAP_UINT(max_entries, MAX_PORTS);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u64);
} error_budgets SEC(".maps");

INLINE struct quote *quote_of_cpu(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&quotes, &zero);
}

/* May this sender get one more error? If two CPUs ask at once, one of them may not. */
INLINE bool take_error(u32 sender)
{
	u64 *budget = bpf_map_lookup_elem(&error_budgets, &sender), word, spent, good;
	u32 now = clock();

	if (!budget)
		return false;
	word = *(volatile u64 *)budget;
	spent = (u32)word;
	good = (u64)(now - (u32)(word >> 32)) * ERRORS_PER_SECOND;
	spent = (spent > good ? spent - good : 0) + ticks_per_second;
	return spent <= ERRORS_AT_ONCE * ticks_per_second &&
	       __sync_bool_compare_and_swap(budget, word, (u64)now << 32 | spent);
}

INLINE u32 fold(u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

INLINE u32 sum_of(const void *bytes, u32 n)
{
	return fold((u32)bpf_csum_diff(0, 0, bytes, n, 0));
}

/* The guest may have left the checksum of TCP or UDP to a device on the way, which would change the quoted bytes after
 * the error's own checksum was made. It gets the only value that stays the same when a device computes it: with t the
 * sum of the other bytes, -t / 2. Returns the sum of the quote then; 0 = it can't be made. */
INLINE u32 settle_checksum(struct __sk_buff *skb, const struct packet *k, struct quote *q, u32 sum)
{
	u32 header = k->l4 - ETH_HEADER, at = k->protocol == PROTOCOL_TCP ? 16 : 6, t;
	u16 was, settled;

	if (k->protocol != PROTOCOL_TCP && k->protocol != PROTOCOL_UDP)
		return sum;
	if (header < IPV4_HEADER || header > CSUM_MOST || header & 3)
		return 0;
	at += header;
	if (bpf_skb_load_bytes(skb, ETH_HEADER + at, &was, 2))
		return 0;
	t = fold((u64)sum + (0xffff - sum_of(q->packet, header & (CSUM_MOST * 2 - 4))) + (0xffff - was)) % 0xffff;
	settled = t & 1 ? (0xffff - t) / 2 : 0xffff - t / 2;
	if (bpf_skb_store_bytes(skb, ETH_HEADER + at, &settled, 2, STORE_CHECKSUM))
		return 0;
	return fold((u64)sum + (0xffff - was) + settled);
}

/* Is the packet longer than what it says the tunnel takes? One that is only padded gets no error. */
INLINE bool is_long(struct __sk_buff *skb, const struct crossing *c, const struct packet *k)
{
	return skb->gso_size || k->end - k->l3 > c->narrow;
}

/* RFC 1122 section 3.2.2, RFC 1812 section 4.3.2.7: no error for what is not from one station to one station. */
INLINE bool wants_error4(struct __sk_buff *skb, const struct crossing *c, const struct packet *k)
{
	u8 from = ((u8 *)k->addresses)[0], to = ((u8 *)k->addresses)[4], type = ((u8 *)&k->ports)[2], flags = 0;

	if (bpf_skb_load_bytes(skb, ETH_HEADER + 6, &flags, 1) || !(flags & IPV4_DONT_FRAGMENT))
		return false;
	if (c->narrow < LEAST_IPV4 || skb->len < ETH_HEADER + QUOTE_IPV4 || !is_long(skb, c, k))
		return false;
	if (!from || from == 127 || from >= 224 || !to || to == 127 || to >= 224)
		return false;
	return k->protocol != PROTOCOL_ICMP || (type != 3 && type != 4 && type != 5 && type != 11 && type != 12);
}

/* RFC 4443 section 2.4 (e). */
INLINE bool wants_error6(struct __sk_buff *skb, const struct crossing *c, const struct packet *k)
{
	u8 from = ((u8 *)k->addresses)[0], to = ((u8 *)k->addresses)[16], type = ((u8 *)&k->ports)[2];

	if (c->narrow < LEAST_IPV6 || skb->len < ETH_HEADER + QUOTE_IPV6 || !is_long(skb, c, k))
		return false;
	if (from == 255 || to == 255 || !(k->addresses[0] | k->addresses[1] | k->addresses[2] | k->addresses[3]))
		return false;
	return k->protocol != PROTOCOL_ICMPV6 || (type >= ICMPV6_QUERIES && type != ICMPV6_REDIRECT);
}

/* The Ethernet header of the error: back to the sender, from whom it wrote to. */
INLINE void put_ethernet(u8 *h, const struct crossing *c, u16 type)
{
	__builtin_memcpy(h, c->mac + 6, 6);
	__builtin_memcpy(h + 6, c->mac, 6);
	*(be16 *)(h + 12) = HTONS(type);
}

INLINE bool make_error4(struct __sk_buff *skb, const struct crossing *c, const struct packet *k, struct quote *q)
{
	u8 *h = q->head, *ip = h + ETH_HEADER;
	u32 sum;

	if (bpf_skb_change_tail(skb, ETH_HEADER + QUOTE_IPV4, 0) ||
	    bpf_skb_load_bytes(skb, ETH_HEADER, q->packet, QUOTE_IPV4))
		return false;
	sum = fold((u64)sum_of(q->packet, CSUM_MOST) + sum_of(q->packet + CSUM_MOST, QUOTE_IPV4 - CSUM_MOST));
	sum = settle_checksum(skb, k, q, sum);
	if (!sum || bpf_skb_adjust_room(skb, ERROR_IPV4, ADJUST_MAC, 0))
		return false;
	__builtin_memset(h, 0, sizeof(q->head));
	put_ethernet(h, c, TYPE_IPV4);
	ip[0] = 0x45;
	ip[1] = TOS_CONTROL;
	*(be16 *)(ip + 2) = HTONS(ERROR_IPV4 + QUOTE_IPV4);
	ip[6] = IPV4_DONT_FRAGMENT;
	ip[8] = OUTER_TTL;
	ip[9] = PROTOCOL_ICMP;
	__builtin_memcpy(ip + 12, q->packet + 16, 4);
	__builtin_memcpy(ip + 16, q->packet + 12, 4);
	*(be16 *)(ip + 10) = ~sum_of(ip, IPV4_HEADER);
	ip[20] = ICMP_UNREACHABLE;
	ip[21] = ICMP_FRAGMENTATION_NEEDED;
	*(be16 *)(ip + 26) = HTONS(c->narrow);
	*(be16 *)(ip + 22) = ~fold((u64)sum + sum_of(ip + 20, 8));
	return !bpf_skb_store_bytes(skb, 0, h, ETH_HEADER + ERROR_IPV4, STORE_CHECKSUM);
}

INLINE bool make_error6(struct __sk_buff *skb, const struct crossing *c, const struct packet *k, struct quote *q)
{
	u8 *h = q->head, *ip = h + ETH_HEADER;
	u32 sum;

	if (bpf_skb_change_tail(skb, ETH_HEADER + QUOTE_IPV6, 0) ||
	    bpf_skb_load_bytes(skb, ETH_HEADER, q->packet, QUOTE_IPV6))
		return false;
	sum = fold((u64)sum_of(q->packet, CSUM_MOST) + sum_of(q->packet + CSUM_MOST, CSUM_MOST) +
		   sum_of(q->packet + 2 * CSUM_MOST, QUOTE_IPV6 - 2 * CSUM_MOST));
	sum = settle_checksum(skb, k, q, sum);
	if (!sum || bpf_skb_adjust_room(skb, ERROR_IPV6, ADJUST_MAC, 0))
		return false;
	__builtin_memset(h, 0, sizeof(q->head));
	put_ethernet(h, c, TYPE_IPV6);
	ip[0] = 0x60;
	*(be16 *)(ip + 4) = HTONS(8 + QUOTE_IPV6);
	ip[6] = PROTOCOL_ICMPV6;
	ip[7] = 255;
	__builtin_memcpy(ip + 8, q->packet + 24, 16);
	__builtin_memcpy(ip + 24, q->packet + 8, 16);
	ip[40] = ICMPV6_TOO_BIG;
	*(be32 *)(ip + 44) = __builtin_bswap32(c->narrow);
	sum = fold((u64)sum + sum_of(ip + 8, 40) + HTONS(8 + QUOTE_IPV6) + HTONS(PROTOCOL_ICMPV6));
	*(be16 *)(ip + 42) = ~sum;
	return !bpf_skb_store_bytes(skb, 0, h, ETH_HEADER + ERROR_IPV6, STORE_CHECKSUM);
}

/* Makes the frame the error for its sender; 0 = there is none. A function of its own for the verifier. */
SEPARATE u32 make_error(struct __sk_buff *skb)
{
	struct crossing *c = crossing_of_cpu();
	struct packet *k = packet_of_cpu();
	struct quote *q = quote_of_cpu();

	if (!c || !k || !q || !c->sender)
		return 0;
	read_packet(skb);
	if (k->l3 != ETH_HEADER || k->is & PACKET_LATER)
		return 0;
	if (k->is & PACKET_IPV4)
		return wants_error4(skb, c, k) && take_error(c->sender) && make_error4(skb, c, k, q);
	if (k->is & PACKET_IPV6)
		return wants_error6(skb, c, k) && take_error(c->sender) && make_error6(skb, c, k, q);
	return 0;
}

/* A frame of which a copy did not fit the tunnel, after all copies that did. */
INLINE s32 too_big(struct __sk_buff *skb, struct crossing *c)
{
	c->sender = sender_of(skb);
	return make_error(skb) ? hand_back(skb, c) : VERDICT_DROP;
}
