/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The tunnel answers for stations of other hosts whose addresses are known (S85): the request becomes the answer, and
 * comes out of the tunnel as if the owner had sent it. So the switch program treats it as every frame from there. */
#pragma once
#include "overlay/bind.h"

/* Of an answer on its way back through the tunnel's device. */
enum { MARK_ANSWERED = 0x48644c6e, RECOMPUTE_CHECKSUM = 1 };

/* Who has the address that is asked for? What was heard and what was told: the later one counts. Nobody is known as long
 * as it is not sure. */
INLINE bool find_owner(struct neighbour *k)
{
	struct binding *heard = bpf_map_lookup_elem(&bindings, &k->asked);
	struct told_binding *told;
	u64 seen = 0;

	NO_MERGE();
	told = bpf_map_lookup_elem(&told_bindings, &k->asked);
	k->flags = 0;
	if (heard && heard->contested && (s64)(heard->contested - k->now) > 0)
		return false;
	if (heard && binding_holds(k, heard->seen)) {
		seen = heard->seen;
		k->flags = heard->flags;
		__builtin_memcpy(k->found, heard->mac, 6);
	}
	if (!seen)
		heard = 0;
	if (told && binding_holds(k, told->seen) && (!seen || (s64)(told->seen - seen) > 0)) {
		seen = told->seen;
		heard = 0;
		k->flags = told->flags;
		__builtin_memcpy(k->found, told->mac, 6);
	}
	return seen && !same_mac(k->found, k->speaker.mac) && (!heard || is_sure(k, heard));
}

/* Does the ARP packet ask for another station's address, and is it for all? */
INLINE bool asks_arp(struct neighbour *k, const u8 *destination)
{
	struct arp *a = &k->arp;

	if (a->operation != HTONS(ARP_REQUEST) || *(const u32 *)destination != 0xffffffff ||
	    *(const u16 *)(destination + 4) != 0xffff)
		return false;
	if (!is_stations_ipv4(a->sender) || !same_mac(a->sender_mac, k->speaker.mac))
		return false;
	key_ipv4(&k->asked, a->target);
	return k->owner.address[3] != k->asked.address[3];
}

/* Likewise a solicitation, to the group of those with the address's last bits. Not one that finds out whether another
 * station has the sender's address: it has no source. */
INLINE bool asks_nd(struct neighbour *k)
{
	struct neighbour_nd *n = &k->nd;

	if (n->type != ND_SOLICITATION || *(const u8 *)n->destination != 0xff)
		return false;
	if (!is_stations_ipv6(n->source) || !same_mac(n->mac, k->speaker.mac))
		return false;
	key_ipv6(&k->asked, n->target);
	return true;
}

INLINE void turn_arp(struct neighbour *k)
{
	struct arp *a = &k->arp;

	a->operation = HTONS(ARP_REPLY);
	__builtin_memcpy(a->target_mac, k->speaker.mac, 6);
	__builtin_memcpy(a->target, a->sender, 4);
	__builtin_memcpy(a->sender_mac, k->found, 6);
	__builtin_memcpy(a->sender, &k->asked.address[3], 4);
}

/* The checksum of ICMPv6 (RFC 4443), with its field zero. */
INLINE be16 checksum_nd(const struct neighbour_nd *n)
{
	const u16 *w = (const u16 *)n->source;
	u32 sum = HTONS(PROTOCOL_ICMPV6) + HTONS(ND_LENGTH);

	for (u32 i = 0; i < 32 / 2 + ND_LENGTH / 2; i++)
		sum += w[i];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

INLINE void turn_nd(struct neighbour *k)
{
	struct neighbour_nd *n = &k->nd;

	__builtin_memcpy(n->destination, n->source, 16);
	__builtin_memcpy(n->source, n->target, 16);
	n->type = ND_ADVERTISEMENT;
	n->flags[0] = ND_SOLICITED | ND_OVERRIDE | (k->flags & BINDING_ROUTER ? ND_ROUTER : 0);
	n->flags[1] = n->flags[2] = n->flags[3] = 0;
	n->option = ND_TARGET_MAC;
	__builtin_memcpy(n->mac, k->found, 6);
	n->checksum = 0;
	n->checksum = checksum_nd(n);
}

/* Writes the answer over the request. */
INLINE bool write_answer(struct __sk_buff *skb, struct neighbour *k, enum neighbour_form form)
{
	__builtin_memcpy(k->macs, k->speaker.mac, 6);
	__builtin_memcpy(k->macs + 6, k->found, 6);
	if (form == FORM_ARP)
		turn_arp(k);
	else
		turn_nd(k);
	if (bpf_skb_store_bytes(skb, 0, k->macs, sizeof(k->macs), RECOMPUTE_CHECKSUM))
		return false;
	if (form == FORM_ARP)
		return !bpf_skb_store_bytes(skb, ETH_HEADER, &k->arp, sizeof(k->arp), RECOMPUTE_CHECKSUM);
	return !bpf_skb_store_bytes(skb, ETH_HEADER, &k->nd, sizeof(k->nd), RECOMPUTE_CHECKSUM);
}

/* Are others asked though it is known who has the address? So that they hear that the asker has its own address now
 * (S194), or because the answer did not help before. */
INLINE bool asks_others(struct neighbour *k, struct neighbour_speaker *s)
{
	struct binding *b;

	if (!k->announces)
		return s && asks_again(k, s);
	b = bpf_map_lookup_elem(&bindings, &k->asked);
	if (b)
		note_question(k, b);
	return true;
}

/* Answers a request on its way out if it can. VERDICT_NEXT if it can't: then others are asked. */
INLINE s32 answer(struct __sk_buff *skb, struct crossing *c, const struct tunnel *t)
{
	enum neighbour_form form = hear(skb, c, t, BINDING_HERE);
	struct neighbour *k = neighbour_of_cpu();
	struct neighbour_speaker *s;

	if (form == FORM_OTHER || !k || !skb->vlan_present)
		return VERDICT_NEXT;
	if (form == FORM_ARP ? !asks_arp(k, c->mac) : !asks_nd(k))
		return VERDICT_NEXT;
	if (!find_owner(k))
		return VERDICT_NEXT;
	if (form == FORM_ND && !(k->flags & (BINDING_HERE | BINDING_ADVERTISED)))
		return VERDICT_NEXT;
	s = share_of(k);
	if (asks_others(k, s))
		return VERDICT_NEXT;
	if (k->flags & BINDING_HERE)
		return refuse_leaving(skb, c, 0, REASON_NEIGHBOUR_HERE);
	if (!s || s->answers >= ANSWERS_PER_SECOND)
		return refuse_leaving(skb, c, 0, REASON_NEIGHBOUR_LIMIT);
	s->answers++;
	capture_left(skb, 0, REASON_NEIGHBOUR_ANSWERED);
	if (!write_answer(skb, k, form))
		return refuse_leaving(skb, c, 0, REASON_MALFORMED);
	count_refusal(c, 0, REASON_NEIGHBOUR_ANSWERED);
	if (recording) {
		struct crossing_record *r = recorded_crossing();

		if (r)
			r->answered = 2;
		return VERDICT_REDIRECT;
	}
	skb->mark = MARK_ANSWERED;
	return bpf_redirect(skb->ifindex, REDIRECT_INGRESS);
}

/* Is this an answer of this host's own? Frames of other hosts have an outer header's data. */
INLINE bool is_own_answer(struct __sk_buff *skb, struct crossing *c)
{
	return skb->mark == MARK_ANSWERED && bpf_skb_get_tunnel_key(skb, &c->key, sizeof(c->key), 0) &&
	       bpf_skb_get_tunnel_key(skb, &c->key, sizeof(c->key), KEY_IPV6);
}
