/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Which MAC has an address is heard from ARP and ND alone, both of this host's guests on their way out, which their
 * ports' guards have let pass, and of other hosts' guests (S85). A binding that is heard again with another MAC has
 * moved: the next one who asks is answered by that one itself, and those after it by their own host (S154). */
#pragma once
#include "overlay/doubt.h"

enum neighbour_message {
	ND_SOLICITATION = 135,
	ND_ADVERTISEMENT = 136,
	ND_SOURCE_MAC = 1,
	ND_TARGET_MAC = 2,
	ND_ROUTER = 0x80,
	ND_SOLICITED = 0x40,
	ND_OVERRIDE = 0x20,
	ND_HOPS = 255,
	ND_LENGTH = 32, /* of the message with its option */
	ND_BARE_LENGTH = 24, /* without one */
};

/* What the packet is. */
enum neighbour_form {
	FORM_OTHER,
	FORM_ARP,
	FORM_ND,
};

INLINE void key_ipv4(struct binding_key *key, const u8 *address)
{
	key->address[0] = key->address[1] = 0;
	key->address[2] = __builtin_bswap32(0xffff);
	__builtin_memcpy(&key->address[3], address, 4);
}

INLINE void key_ipv6(struct binding_key *key, const be32 *address)
{
	__builtin_memcpy(key->address, address, 16);
}

/* Addresses that a station can have: no group, not unspecified, not its own loopback. */
INLINE bool is_stations_ipv4(const u8 *a)
{
	return a[0] && a[0] != 127 && a[0] < 224;
}

INLINE bool is_stations_ipv6(const be32 *a)
{
	return *(const u8 *)a != 0xff && (a[0] || a[1] || a[2] || (a[3] && a[3] != __builtin_bswap32(1)));
}

/* Is the binding in force? */
INLINE bool binding_holds(const struct neighbour *k, u64 seen)
{
	return k->now - seen <= k->hold;
}

/* The address is the sender's from now on. Other hosts and their guests, who may know another owner, hear that in its next
 * packet for several stations, be it this one: flags remembers that none has passed. */
INLINE void take_notice(struct neighbour *k, u8 *flags)
{
	if (!(k->says & BINDING_HERE))
		return;
	if (k->group)
		k->announces = 1;
	else
		*flags |= BINDING_UNANNOUNCED;
}

/* What becomes of the address that another MAC had until now. It is not sure who has it until the new owner has answered
 * a question; one answer is not enough if the former owner is on this host, as its own answer would not pass the tunnel.
 * Who goes back and forth is believed no more: two stations have the address, or one pretends to. An owner that has moved
 * for good is silent where it was, and one that takes over by announcing itself, as routers with a virtual address do,
 * may do so again and again. */
INLINE void take_over(struct neighbour *k, const struct binding *was)
{
	struct binding *b = &k->fresh;
	bool answered = is_new_owners_answer(k, was);

	__builtin_memcpy(b->rival, was->mac, 6);
	b->changed = k->now;
	b->contested = was->contested;
	if (was->flags & BINDING_HERE)
		b->flags |= BINDING_UNVERIFIED | BINDING_UNHEARD;
	else if (!answered)
		b->flags |= BINDING_UNVERIFIED;
	if (!was->changed || !same_mac(was->rival, b->mac) || !binding_holds(k, was->changed))
		return;
	b->turns = was->turns < 255 ? was->turns + answered : 255;
	if (b->turns < 2 && k->now - was->changed > DEFENCE_TIME * ticks_per_second)
		return;
	b->contested = k->now + k->hold;
	count_neighbour(k, NEIGHBOUR_CONTESTED);
}

/* The same where the controllers have told who had it. */
INLINE void take_over_told(struct neighbour *k)
{
	struct told_binding *told = bpf_map_lookup_elem(&told_bindings, &k->owner);
	struct binding *b = &k->fresh;

	if (!told || !binding_holds(k, told->seen) || same_mac(told->mac, b->mac))
		return;
	__builtin_memcpy(b->rival, told->mac, 6);
	b->changed = k->now;
	b->flags |= BINDING_UNVERIFIED;
}

/* Have the controllers told since the owner was heard that another MAC has the address? Then that one is the owner, and is
 * in the binding what a former one is. */
INLINE bool is_told_since(struct neighbour *k, struct binding *was)
{
	struct told_binding *told = bpf_map_lookup_elem(&told_bindings, &k->owner);

	if (!told || !binding_holds(k, told->seen) || (s64)(told->seen - was->seen) <= 0 ||
	    same_mac(told->mac, was->mac))
		return false;
	__builtin_memcpy(was->rival, told->mac, 6);
	was->changed = k->now;
	return true;
}

/* The owner has been heard again. If its time was over, it has the address anew. */
INLINE void hear_again(struct neighbour *k, struct binding *was)
{
	u8 doubts = was->flags & BINDING_DOUBTS, notice = 0;
	bool answers = is_answer(k, was), told = !answers && is_told_since(k, was);

	if (told || was->flags & BINDING_UNANNOUNCED)
		take_notice(k, &notice);
	if (answers)
		doubts = 0;
	else if (told)
		doubts = BINDING_UNVERIFIED | (doubts & BINDING_UNHEARD);
	else if (!binding_holds(k, was->seen) || is_doubt_over(k, was))
		doubts = 0;
	if (k->says & BINDING_ADVERTISED)
		was->flags = k->says | doubts | notice;
	else
		was->flags = (was->flags & ~(BINDING_HERE | BINDING_DOUBTS | BINDING_UNANNOUNCED)) | k->says | doubts |
			     notice;
	if (was->seen != k->now)
		was->seen = k->now;
}

/* The owner's address has been heard. */
INLINE void bind_owner(struct neighbour *k)
{
	struct binding *was = bpf_map_lookup_elem(&bindings, &k->owner), *b = &k->fresh;
	struct neighbour_speaker *s;

	if (was && same_mac(was->mac, k->speaker.mac)) {
		hear_again(k, was);
		return;
	}
	s = share_of(k);
	if (!s || s->bindings >= BINDINGS_PER_SECOND) {
		count_neighbour(k, NEIGHBOUR_UNBOUND);
		if (was)
			was->contested = k->now + k->hold; /* it is not known who has the address */
		return;
	}
	s->bindings++;
	__builtin_memset(b, 0, sizeof(*b));
	b->seen = k->now;
	b->flags = k->says;
	__builtin_memcpy(b->mac, k->speaker.mac, 6);
	take_notice(k, &b->flags);
	if (was && binding_holds(k, was->seen))
		take_over(k, was);
	else
		take_over_told(k);
	if (s->bindings > SURE_PER_SECOND)
		b->flags |= BINDING_UNVERIFIED; /* a sweep: its owners may be silent */
	bpf_map_update_elem(&bindings, &k->owner, b, UPDATE_ANY);
}

/* Reads ARP for IPv4. Returns whether it is such. */
INLINE bool read_arp(struct __sk_buff *skb, struct neighbour *k)
{
	struct arp *a = &k->arp;

	if (bpf_skb_load_bytes(skb, ETH_HEADER, a, sizeof(*a)))
		return false;
	return is_arp_of_ipv4(a) && (a->operation == HTONS(ARP_REQUEST) || a->operation == HTONS(ARP_REPLY));
}

INLINE bool is_icmpv6(struct __sk_buff *skb)
{
	u8 protocol = 0;

	return !bpf_skb_load_bytes(skb, ETH_HEADER + 6, &protocol, 1) && protocol == PROTOCOL_ICMPV6;
}

/* Reads a neighbour solicitation or advertisement whose only option is the sender's MAC. */
INLINE bool read_nd(struct __sk_buff *skb, struct neighbour *k)
{
	struct neighbour_nd *n = &k->nd;

	if (bpf_skb_load_bytes(skb, ETH_HEADER, n, sizeof(*n)))
		return false;
	return n->version[0] >> 4 == 6 && n->length == HTONS(ND_LENGTH) && n->hops == ND_HOPS && !n->code &&
	       n->option_length == 1 && is_stations_ipv6(n->target) &&
	       ((n->type == ND_SOLICITATION && n->option == ND_SOURCE_MAC) ||
		(n->type == ND_ADVERTISEMENT && n->option == ND_TARGET_MAC));
}

/* Reads a solicitation that finds out whether another station has the address: it has no source, and no MAC. */
INLINE bool read_nd_probe(struct __sk_buff *skb, struct neighbour *k)
{
	struct neighbour_nd *n = &k->nd;

	if (bpf_skb_load_bytes(skb, ETH_HEADER, n, sizeof(*n) - (ND_LENGTH - ND_BARE_LENGTH)))
		return false;
	return n->version[0] >> 4 == 6 && n->hops == ND_HOPS && n->type == ND_SOLICITATION && !n->code &&
	       (n->length == HTONS(ND_LENGTH) || n->length == HTONS(ND_BARE_LENGTH)) &&
	       !(n->source[0] | n->source[1] | n->source[2] | n->source[3]) && is_stations_ipv6(n->target);
}

/* The sender's address in ARP. A probe has none (RFC 5227). */
INLINE void hear_arp(struct neighbour *k)
{
	struct arp *a = &k->arp;

	if (a->operation != HTONS(ARP_REPLY))
		k->answers = 0;
	if (!is_stations_ipv4(a->sender)) {
		if (*(u32 *)a->sender || !is_stations_ipv4(a->target) || a->operation != HTONS(ARP_REQUEST))
			return;
		key_ipv4(&k->asked, a->target);
		doubt(k);
		return;
	}
	if (!same_mac(a->sender_mac, k->speaker.mac)) {
		count_neighbour(k, NEIGHBOUR_SPOOFED);
		return;
	}
	key_ipv4(&k->owner, k->arp.sender);
	bind_owner(k);
}

/* The sender's address in a solicitation, or that which it advertises: not an address that several share. */
INLINE void hear_nd(struct neighbour *k)
{
	struct neighbour_nd *n = &k->nd;
	u8 router = n->flags[0] & ND_ROUTER ? BINDING_ROUTER : 0;

	if (n->type != ND_ADVERTISEMENT || !(n->flags[0] & ND_SOLICITED))
		k->answers = 0;
	if (n->type == ND_SOLICITATION && !is_stations_ipv6(n->source))
		return;
	if (!same_mac(n->mac, k->speaker.mac)) {
		count_neighbour(k, NEIGHBOUR_SPOOFED);
		return;
	}
	if (n->type == ND_SOLICITATION) {
		key_ipv6(&k->owner, n->source);
	} else {
		if (!(n->flags[0] & ND_OVERRIDE))
			return;
		key_ipv6(&k->owner, n->target);
		k->says |= BINDING_ADVERTISED | router;
	}
	bind_owner(k);
}

/* Hears who has which address, in a frame of the segment that c->at says. flags says where the sender is. Returns what
 * the packet is. */
INLINE enum neighbour_form hear(struct __sk_buff *skb, const struct crossing *c, const struct tunnel *t, u8 flags)
{
	struct neighbour *k;

	if (!t->hold || (skb->protocol != HTONS(TYPE_ARP) && skb->protocol != HTONS(TYPE_IPV6)))
		return FORM_OTHER;
	k = neighbour_of_cpu();
	if (!k || c->mac[6] & 1)
		return FORM_OTHER;
	k->owner.segment = k->asked.segment = k->speaker.segment = c->at.segment;
	__builtin_memcpy(k->speaker.mac, c->mac + 6, 6);
	k->speaker.whole = 0;
	k->slot = c->slot;
	k->says = flags;
	k->group = c->mac[0] & 1;
	k->announces = 0;
	k->answers = !k->group;
	k->now = clock();
	k->hold = t->hold * ticks_per_second;
	if (skb->protocol == HTONS(TYPE_ARP)) {
		if (!read_arp(skb, k))
			return FORM_OTHER;
		hear_arp(k);
		return FORM_ARP;
	}
	if (!is_icmpv6(skb))
		return FORM_OTHER;
	if (read_nd_probe(skb, k)) {
		key_ipv6(&k->asked, k->nd.target);
		doubt(k);
		return FORM_OTHER;
	}
	if (!read_nd(skb, k))
		return FORM_OTHER;
	hear_nd(k);
	return FORM_ND;
}
