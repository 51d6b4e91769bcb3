/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Which flow a frame belongs to, and the packets it stands for (frame-rules §9). The outermost tag is beside the frame. */
#pragma once
#include "core/packet.h"
#include "meter/begin.h"

/* Each segment of a GSO frame repeats the headers; what follows them is cut into segments. */
INLINE void meter_lengths(struct __sk_buff *skb, struct meter_scratch *s, const struct packet *k)
{
	u32 size = skb->gso_size, n = skb->gso_segs, headers = k->payload - k->l3, payload;

	s->taken.packets = 1;
	s->taken.last_bytes = k->end - k->l3;
	s->taken.last_frame_bytes = skb->len;
	if (LIKELY(!size) || skb->len <= k->payload)
		return;
	payload = skb->len - k->payload;
	if (!n)
		n = size == GSO_ANY_LENGTH ? 1 : (payload - 1) / size + 1;
	if ((u64)(n - 1) * size >= payload || (u64)n * size < payload)
		size = payload / n; /* they differ in length, or inner headers are repeated as well: use the average */
	s->taken.packets = n;
	s->taken.bytes = headers + size;
	s->taken.last_bytes = headers + payload - (n - 1) * size;
	s->taken.frame_bytes = k->l3 + s->taken.bytes;
	s->taken.last_frame_bytes = k->l3 + s->taken.last_bytes;
}

/* Writes whole words, of the length in which they are compared: after narrower writes the look-up would have to wait
 * for them. */
INLINE void meter_key(struct meter_scratch *s, const struct packet *k, const u8 *macs)
{
	s->taken.wide = !(k->is & PACKET_IPV4);
	if (!s->taken.wide) {
		*(u32 *)s->taken.key.macs = *(u32 *)macs;
		*(u64 *)(s->taken.key.macs + 4) = *(u64 *)(macs + 4);
		*(u64 *)s->taken.key.addresses = *(u64 *)k->addresses;
		*(u64 *)s->taken.key.ports = k->ports | (u64)k->protocol << 32;
		return;
	}
	*(u32 *)s->taken.wide_key.macs = *(u32 *)macs;
	*(u64 *)(s->taken.wide_key.macs + 4) = *(u64 *)(macs + 4);
	for (u32 i = 0; i < 32; i += 8)
		*(u64 *)(s->taken.wide_key.addresses + i) = *(u64 *)((const u8 *)k->addresses + i);
	*(u64 *)s->taken.wide_key.ports = k->ports | (u64)(k->type | k->protocol << 16) << 32;
}

/* Prepares this CPU's scratch memory for metering from what was read of the frame; false = it cannot be metered. */
INLINE bool meter_take(struct __sk_buff *skb, struct meter_scratch *s)
{
	const u8 *p = (u8 *)(u64)skb->data, *end = (u8 *)(u64)skb->data_end;
	const struct packet *k = packet_of_cpu();

	if (!k || p + ETH_HEADER > end) /* the same bytes were read when the frame was admitted */
		return false;
	meter_key(s, k, p);
	s->taken.tcp_flags = k->tcp_flags;
	s->taken.tos = k->tos;
	s->taken.ttl = k->ttl;
	meter_lengths(skb, s, k);
	return true;
}

SEPARATE u32 meter_take_packet(struct __sk_buff *skb)
{
	struct meter_scratch *s = meter_scratch_of_cpu();

	return s && meter_take(skb, s);
}

/* Reads the frame into this CPU's scratch memory for metering. */
INLINE void meter_read(struct frame *f)
{
	know_packet(f);
	meter_take_packet(f->skb);
}
