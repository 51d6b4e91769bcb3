/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Does the port's owner use IP addresses that are not its own, answer as a DHCP server or a router where it may not, or
 * send what looks like a probe between hosts (frame-rules §1, The guards)? Ports without any of the four rules skip this
 * check. A packet that can't be read counts as everything that it could be. */
#pragma once
#include "core/arp.h"
#include "core/events.h"
#include "core/packet.h"

enum {
	TYPE_LEAST = 0x0600, /* a smaller value is a length */
	PROTOCOL_IGMP = 2,
	DHCP_SERVER = 67,
	DHCP_CLIENT = 68,
	DHCP_CLIENT_6 = 546,
	ND_ADVERTISEMENT_LENGTH = 24,
	HIDDEN_TAGS = 6, /* behind two tags, behind which the health check's type is looked for */
};

enum icmpv6 {
	LISTENER_QUERY = 130,
	LISTENER_REPORT = 131,
	LISTENER_DONE = 132,
	ROUTER_SOLICITATION = 133,
	ROUTER_ADVERTISEMENT = 134,
	NEIGHBOUR_SOLICITATION = 135,
	NEIGHBOUR_ADVERTISEMENT = 136,
	LISTENER_REPORT_2 = 143,
};

INLINE bool is_guard_reason(enum reason why)
{
	return why >= REASON_IP_SOURCE_NOT_ALLOWED && why <= REASON_GUEST_ROUTER_ADVERTISEMENT;
}

/* What the guards look at: not struct frame, because that is kept in registers. */
struct guarded {
	struct __sk_buff *skb;
	const struct port *in;
	u32 half;
};

/* Is the address in a list? first is an index within the active half. */
SEPARATE u32 guard_lists(u32 first, u32 count, u64 address0, u64 address1)
{
	for (u32 i = 0; i < GUARD_ADDRESSES_PER_PORT; i++) {
		u32 at = first + i;
		struct guard_address *own;

		if (i >= count)
			break;
		own = bpf_map_lookup_elem(&guard_addresses, &at);
		if (!own)
			break;
		if (!((address0 ^ own->address[0]) & own->mask[0]) && !((address1 ^ own->address[1]) & own->mask[1]))
			return 1;
	}
	return 0;
}

INLINE bool owns_ipv4(const struct guarded *g, be32 address)
{
	return guard_lists(g->half * MAX_GUARD_ADDRESSES + g->in->guard_first, g->in->guard_ipv4, address, 0);
}

/* Is this the link-local address that the port's MAC gives (RFC 4291, appendix A)? a is aligned to 8 bytes. */
INLINE bool is_link_local_of(const struct port *p, const u8 *a)
{
	u64 first = *(u32 *)p->mac & 0xffffff, last = *(u32 *)(p->mac + 2) >> 8; /* three bytes each */

	return *(u64 *)a == 0x80fe && *(u64 *)(a + 8) == ((first ^ 2) | 0xfeff000000ULL | last << 40) &&
	       !mac_zero(p->mac);
}

/* a is aligned to 8 bytes. */
INLINE bool owns_ipv6(const struct guarded *g, const u8 *a)
{
	u32 first = g->half * MAX_GUARD_ADDRESSES + g->in->guard_first + g->in->guard_ipv4;

	return is_link_local_of(g->in, a) || guard_lists(first, g->in->guard_ipv6, *(u64 *)a, *(u64 *)(a + 8));
}

/* The type is behind a third tag, or in an LLC header. */
INLINE bool hides_type(const struct guarded *g, struct packet *k)
{
	const u8 *b = k->head;

	if (is_tag(k->type))
		return true;
	if (k->type >= TYPE_LEAST || bpf_skb_load_bytes(g->skb, k->l3, k->head, 6))
		return false;
	return b[0] == 0xaa && b[1] == 0xaa && b[2] == 3 && !b[3] && !b[4] && (!b[5] || b[5] == 0xf8);
}

/* Is the type behind all tags that of probes between hosts? One behind more tags than are read may be. */
INLINE bool is_health_probe(const struct guarded *g, const struct packet *k)
{
	u32 type = k->type, at = k->l3 + 2;
	be16 next;

#pragma clang loop unroll(disable)
	for (u32 i = 0; i < HIDDEN_TAGS && is_tag(type); i++) {
		if (bpf_skb_load_bytes(g->skb, at, &next, 2))
			return false;
		type = NTOHS(next);
		at += TAG;
	}
	return type == TYPE_BEACON || is_tag(type);
}

INLINE bool may_arp(const struct guarded *g, const struct packet *k)
{
	struct arp a;
	be32 sender;

	if (bpf_skb_load_bytes(g->skb, k->l3, &a, ARP_LENGTH))
		return false;
	if (!is_arp_of_ipv4(&a))
		return false;
	__builtin_memcpy(&sender, a.sender, 4);
	if (!sender && a.operation == HTONS(ARP_REQUEST))
		return true; /* an ARP probe (RFC 5227) */
	return owns_ipv4(g, sender);
}

INLINE u32 icmpv6_type(const struct packet *k)
{
	if (!(k->is & PACKET_IPV6) || k->is & PACKET_LATER || k->protocol != PROTOCOL_ICMPV6)
		return 0;
	return ((const u8 *)&k->ports)[2];
}

INLINE u32 udp_to(const struct packet *k)
{
	if (k->is & PACKET_LATER || k->protocol != PROTOCOL_UDP || !(k->is & PACKET_PORTS))
		return 0;
	return NTOHS(((const be16 *)&k->ports)[1]);
}

INLINE bool unreadable(const struct packet *k)
{
	if (!(k->is & (PACKET_IPV4 | PACKET_IPV6)) || k->is & PACKET_LATER)
		return false;
	if (k->protocol == PROTOCOL_UDP)
		return !(k->is & PACKET_PORTS);
	if (!(k->is & PACKET_IPV6))
		return false;
	return k->protocol == PROTOCOL_ICMPV6 ? !icmpv6_type(k) : is_extension(k->protocol);
}

INLINE bool may_send_ipv4(const struct guarded *g, const struct packet *k)
{
	const u8 *destination = (const u8 *)&k->addresses[1];

	if (owns_ipv4(g, k->addresses[0]))
		return true;
	if (k->protocol == PROTOCOL_IGMP && destination[0] >> 4 == 14)
		return true;
	return !k->addresses[0] && !(k->is & PACKET_FRAGMENT) && udp_to(k) == DHCP_SERVER;
}

INLINE bool may_send_ipv6(const struct guarded *g, const struct packet *k)
{
	const u64 *source = (const u64 *)k->addresses;

	if (owns_ipv6(g, (const u8 *)k->addresses))
		return true;
	if (k->is & PACKET_FRAGMENT)
		return false;
	switch (icmpv6_type(k)) {
	case LISTENER_QUERY:
	case LISTENER_REPORT:
	case LISTENER_DONE:
	case LISTENER_REPORT_2:
		return *(const u8 *)&k->addresses[4] == 0xff;
	case ROUTER_SOLICITATION:
	case NEIGHBOUR_SOLICITATION:
		return !source[0] && !source[1];
	}
	return false;
}

/* The target follows type, code, checksum and flags. */
INLINE bool may_advertise(const struct guarded *g, struct packet *k)
{
	u8 *target = k->head;

	if (k->end < k->l4 + ND_ADVERTISEMENT_LENGTH || bpf_skb_load_bytes(g->skb, k->l4 + 8, target, 16))
		return false;
	return owns_ipv6(g, target);
}

INLINE enum reason guard_addresses_of(const struct guarded *g, struct packet *k)
{
	bool allowed;

	if (k->type == TYPE_ARP)
		return may_arp(g, k) ? REASON_NONE : REASON_ARP_SENDER_NOT_ALLOWED;
	if (k->type != TYPE_IPV4 && k->type != TYPE_IPV6)
		return REASON_NONE;
	if (k->is & PACKET_IPV4)
		allowed = may_send_ipv4(g, k);
	else
		allowed = k->is & PACKET_IPV6 && may_send_ipv6(g, k);
	return allowed ? REASON_NONE : REASON_IP_SOURCE_NOT_ALLOWED;
}

INLINE enum reason hidden_reason(u32 rules)
{
	if (rules & RULE_GUARDS_ADDRESSES)
		return REASON_IP_SOURCE_NOT_ALLOWED;
	return rules & RULE_NO_ROUTER ? REASON_GUEST_ROUTER_ADVERTISEMENT : REASON_GUEST_DHCP_SERVER;
}

/* Call know_packet first. */
SEPARATE u32 guard_reason(struct __sk_buff *skb, u32 half, u32 slot)
{
	struct guarded guarded = { .skb = skb, .in = port_at(half, slot), .half = half }, *g = &guarded;
	struct packet *k = packet_of_cpu();
	u32 rules, message, why;
	bool closed;

	if (!g->in || !k)
		return REASON_IP_SOURCE_NOT_ALLOWED;
	rules = g->in->rules;
	if (rules & RULE_NO_HEALTH_PROBES && is_health_probe(g, k))
		return REASON_GUEST_HEALTH_PROBE;
	if (!(rules & RULES_GUARD_PACKETS))
		return REASON_NONE;
	if (hides_type(g, k))
		return hidden_reason(rules);
	if (rules & RULE_GUARDS_ADDRESSES) {
		why = guard_addresses_of(g, k);
		if (why)
			return why;
	}
	closed = unreadable(k);
	message = icmpv6_type(k);
	if (k->is & PACKET_IPV6) {
		if (rules & RULE_NO_ROUTER && (closed || message == ROUTER_ADVERTISEMENT))
			return REASON_GUEST_ROUTER_ADVERTISEMENT;
		if (rules & RULE_GUARDS_ADDRESSES &&
		    (closed || (message == NEIGHBOUR_ADVERTISEMENT && !may_advertise(g, k))))
			return REASON_ND_TARGET_NOT_ALLOWED;
	}
	if (rules & RULE_NO_DHCP_SERVER && (closed || udp_to(k) == (k->is & PACKET_IPV6 ? DHCP_CLIENT_6 : DHCP_CLIENT)))
		return REASON_GUEST_DHCP_SERVER;
	return REASON_NONE;
}

INLINE enum reason guard(struct frame *f)
{
	if (!(f->in->rules & RULES_GUARD_PACKETS) && f->facts->type != TYPE_BEACON && !is_tag(f->facts->type))
		return REASON_NONE; /* no packet is read for the health check's sake */
	know_packet(f);
	return guard_reason(f->skb, f->facts->half, f->facts->slot);
}

struct told_claim {
	struct tell tell;
	u8 address[16]; /* the sender's address according to the frame */
	u32 length; /* length of the address: 4, 16, or 0 if it can't be read */
	u32 reserved;
};

/* Reads the address that a guard checked: the sender's for ARP, the target for a neighbour advertisement, else the
 * packet's source. */
INLINE void read_claim(struct __sk_buff *skb, const struct packet *k, struct told_claim *e)
{
	if (k->type == TYPE_ARP) {
		if (!bpf_skb_load_bytes(skb, k->l3 + ARP_SENDER, e->address, 4))
			e->length = 4;
	} else if (icmpv6_type(k) == NEIGHBOUR_ADVERTISEMENT && k->end >= k->l4 + ND_ADVERTISEMENT_LENGTH) {
		if (!bpf_skb_load_bytes(skb, k->l4 + 8, e->address, 16))
			e->length = 16;
	} else if (k->is & PACKET_IPV6) {
		__builtin_memcpy(e->address, k->addresses, 16);
		e->length = 16;
	} else if (k->is & PACKET_IPV4) {
		__builtin_memcpy(e->address, k->addresses, 4);
		e->length = 4;
	}
}

/* Reports what a guard refused; call it after the guard. mac: the frame's source, in the form that tell takes. */
SEPARATE u32 tell_guarded(struct __sk_buff *skb, u32 slot, u32 why, u64 mac)
{
	struct told_claim e = { .tell = { .kind = TELL_REFUSED, .slot = slot, .other = why } };
	struct packet *k = packet_of_cpu();
	struct told *t;

	if (recording || !k)
		return 0;
	t = bpf_map_lookup_elem(&told, &slot);
	if (!t || !may_tell(t, TELL_REFUSED, bpf_jiffies64()))
		return 0;
	sign_tell(&e.tell, t, mac);
	read_claim(skb, k, &e);
	if (bpf_ringbuf_output(&tells, &e, sizeof(e), 0))
		t->untold++;
	else
		t->untold = 0;
	return 0;
}
