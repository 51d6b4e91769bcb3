/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Frames that leave by a tunnel (frame-rules §10): to which endpoints, and with which outer header. The kernel's VXLAN
 * device writes the header; the outer UDP source port is its hash of the inner flow. */
#pragma once
#include "overlay/toobig.h"
#include "overlay/answer.h"

/* Of a copy that has its outer header's data and goes through the device's program a second time. */
enum { MARK_ENCAPSULATED = 0x48644c74 };

/* DSCP and ECN of the inner packet become those of the outer one (RFC 2983, uniform model). The device puts "ECN-capable"
 * in place of an inner "congestion experienced" (RFC 3168 section 9.1.1). */
INLINE void read_tos(struct __sk_buff *skb, struct crossing *c)
{
	const u8 *p = (u8 *)(u64)skb->data, *end = (u8 *)(u64)skb->data_end;
	be16 type = 0;
	u8 *b = c->head;

	c->tos = 0;
	if (p + ETH_HEADER + 2 <= end) {
		type = *(be16 *)(p + 12);
		__builtin_memcpy(b, p + ETH_HEADER, 2);
	} else if (bpf_skb_load_bytes(skb, 12, &type, 2) || bpf_skb_load_bytes(skb, ETH_HEADER, b, 2))
		return;
	if (type == HTONS(TYPE_IPV4))
		c->tos = b[1];
	else if (type == HTONS(TYPE_IPV6))
		c->tos = (b[0] << 4 | b[1] >> 4) & 0xff;
}

/* Reads both MACs; false if the frame is shorter. Most have them where the program can read them itself. */
INLINE bool read_macs(struct __sk_buff *skb, struct crossing *c)
{
	const u8 *p = (u8 *)(u64)skb->data;

	if (p + sizeof(c->mac) > (u8 *)(u64)skb->data_end)
		return !bpf_skb_load_bytes(skb, 0, c->mac, sizeof(c->mac));
	__builtin_memcpy(c->mac, p, sizeof(c->mac));
	return true;
}

/* How long the packets are that leave: the kernel cuts a large one of TCP or UDP, and each part has the headers. */
INLINE void read_length(struct __sk_buff *skb, struct crossing *c)
{
	struct packet *k;

	c->bytes = skb->len - ETH_HEADER;
	if (!skb->gso_size)
		return;
	read_packet(skb);
	k = packet_of_cpu();
	if (k)
		c->bytes = k->payload - k->l3 + (skb->gso_size == GSO_ANY_LENGTH ? 0 : skb->gso_size);
}

/* The number of the frame's segment, which is the tag beside it. The agent's own frames, which announce where a MAC is,
 * have it in their bytes. */
INLINE bool read_number(struct __sk_buff *skb, struct crossing *c)
{
	be16 tag[2] = {};

	c->tci = skb->vlan_tci;
	if (skb->vlan_present)
		return true;
	c->tci = 0;
	if (skb->mark != MARK_AGENT || bpf_skb_load_bytes(skb, 12, tag, 4) || tag[0] != HTONS(TYPE_VLAN))
		return false;
	c->tci = NTOHS(tag[1]);
	return true;
}

/* Gives the frame the tag that it has inside the VNI. */
INLINE bool tag_leaving(struct __sk_buff *skb, struct crossing *c, u32 vlan)
{
	if (bpf_skb_vlan_pop(skb))
		return false;
	return !vlan || !bpf_skb_vlan_push(skb, HTONS(TYPE_VLAN), (c->tci & 0xf000) | vlan);
}

/* Refuses a copy for its length; room is the longest packet that the tunnel takes. */
INLINE s32 refuse_long(struct __sk_buff *skb, struct crossing *c, u32 number, u32 room)
{
	if (!(c->mac[0] & 1) && room < c->narrow)
		c->narrow = room;
	return refuse_leaving(skb, c, number, REASON_TUNNEL_MTU);
}

/* Prepares one copy for an endpoint. Flags that the kernel does not know would make it refuse the key. */
INLINE bool address_to(struct __sk_buff *skb, struct crossing *c, const struct tunnel *t, u32 number)
{
	struct endpoint *e = named_endpoint(number);
	u32 n, i, room, tag = skb->vlan_present ? TAG : 0;
	u64 flags = KEY_IPV6;

	if (!t || !e)
		return !refuse_leaving(skb, c, number, REASON_TUNNEL_NO_ENDPOINT);
	n = e->flags & ENDPOINT_IPV6 ? t->ipv6 : t->ipv4;
	if (!n)
		return !refuse_leaving(skb, c, number, REASON_TUNNEL_NO_ENDPOINT);
	room = e->flags & ENDPOINT_IPV6 ? t->mtu6 : t->mtu4;
	if (e->mtu && e->mtu < room)
		room = e->mtu;
	if (c->bytes + tag > room)
		return !refuse_long(skb, c, number, room > tag ? room - tag : 0);
	i = (c->own % n) & (LOCAL_ENDPOINTS - 1);
	c->key.tos = c->tos;
	c->key.ttl = OUTER_TTL;
	c->key.flags = 0;
	c->key.label = 0;
	if (e->flags & ENDPOINT_IPV6) {
		__builtin_memcpy(c->key.remote, e->address, 16);
		__builtin_memcpy(c->key.local, t->own6[i], 16);
	} else {
		c->key.remote[0] = __builtin_bswap32(e->address[0]);
		c->key.local[0] = __builtin_bswap32(t->own4[i]);
		flags = KEY_NO_CHECKSUM | KEY_DONT_FRAGMENT;
	}
	if (recording) {
		record_crossing(c, number, i, 0);
		return true;
	}
	if (bpf_skb_set_tunnel_key(skb, &c->key, sizeof(c->key), flags))
		return !refuse_leaving(skb, c, number, REASON_DEVICE_REFUSED);
	return true;
}

/* Sends a clone to the endpoint that waits. Each CPU has one place for the data of an outer header: the device must have
 * sent a copy before the next one is prepared. */
INLINE void send_waiting(struct __sk_buff *skb, struct crossing *c)
{
	u32 before = skb->mark;

	if (!c->waiting || !address_to(skb, c, bpf_map_lookup_elem(&tunnels, &c->slot), c->waiting))
		return;
	if (recording)
		return;
	skb->mark = MARK_ENCAPSULATED;
	if (bpf_clone_redirect(skb, skb->ifindex, 0))
		refuse_leaving(skb, c, c->waiting, REASON_DEVICE_REFUSED);
	else {
		if (capturing)
			capture_left(skb, c->waiting, 0);
		c->copies++;
	}
	skb->mark = before;
}

struct replicate {
	struct __sk_buff *skb;
	u32 segment;
	u32 reserved;
};

/* A member waits for its copy until the next one is found, so that the last one gets the frame itself. */
static s64 replicate_one(u32 i, struct replicate *r)
{
	struct overlay_segment *s = bpf_map_lookup_elem(&overlay_segments, &r->segment);
	struct crossing *c = crossing_of_cpu();

	if (!s || !c)
		return 1;
	send_waiting(r->skb, c);
	c->waiting = s->member[i & (MAX_SEGMENT_MEMBERS - 1)];
	return 0;
}

/* What the file or the controllers say of a MAC in the frame's VNI. */
INLINE struct location *said_of(struct crossing *c, const u8 *mac)
{
	struct location_key whole = { .segment = c->key.vni, .whole = c->slot };

	__builtin_memcpy(whole.mac, mac, 6);
	return bpf_map_lookup_elem(&locations, &whole);
}

INLINE bool location_counts(const struct location *l)
{
	if (!l || !named_endpoint(l->endpoint))
		return false;
	return l->source != LOCATION_LEARNED || clock() - l->seen <= LOCATION_AGEING * ticks_per_second;
}

/* What is known of the destination in the frame's segment: whole is 0 or TOLD_IN_SEGMENT. */
INLINE u32 located_here(struct crossing *c, u16 whole)
{
	struct location *l;

	__builtin_memcpy(c->at.mac, c->mac, 6);
	c->at.whole = whole;
	l = bpf_map_lookup_elem(&locations, &c->at);
	return location_counts(l) ? l->endpoint : 0;
}

/* The number of the endpoint behind which the destination is known to be; 0 = unknown, or a group. The file's word
 * counts most, then what frames show where the tunnel learns, then what the controllers say of the segment, then what
 * they say of the whole VNI: they are silent while it learns. They say nothing of a segment if the file names the MAC. */
INLINE u32 locate(struct crossing *c, const struct tunnel *t)
{
	bool learns = t && t->rules & TUNNEL_LEARNS, listed = !t || !(t->rules & TUNNEL_UNLISTED);
	struct location *said = 0;
	u32 endpoint;

	if (c->mac[0] & 1)
		return 0;
	if (listed) {
		said = said_of(c, c->mac);
		if (said && said->source == LOCATION_STATIC)
			return location_counts(said) ? said->endpoint : 0;
	}
	endpoint = learns ? located_here(c, 0) : 0;
	if (!endpoint)
		endpoint = located_here(c, TOLD_IN_SEGMENT);
	if (endpoint)
		return endpoint;
	if (!listed)
		said = said_of(c, c->mac);
	return location_counts(said) ? said->endpoint : 0;
}

/* What the outer headers of a frame's copies depend on. */
INLINE void read_inner(struct __sk_buff *skb, struct crossing *c)
{
	c->own = *(u32 *)(c->mac + 8);
	c->own ^= c->own >> 24 ^ c->own >> 16;
	read_tos(skb, c);
	read_length(skb, c);
	c->copies = c->refused = 0;
	c->narrow = ANY_LENGTH;
}

/* As the proxy of this host's subnet (S84): gives each other member there a copy of a frame that came from another
 * subnet. Whoever gets it sees that it comes from the own subnet, and does not repeat it. */
INLINE void repeat(struct __sk_buff *skb, struct crossing *c)
{
	struct replicate r = { .skb = skb, .segment = c->at.segment };
	struct overlay_segment *s = bpf_map_lookup_elem(&overlay_segments, &r.segment);

	if (!s || !s->near)
		return;
	read_inner(skb, c);
	c->waiting = 0;
	bpf_loop(s->near, replicate_one, &r, 0);
	send_waiting(skb, c);
}

INLINE s32 leave(struct __sk_buff *skb, struct crossing *c)
{
	struct replicate r = { .skb = skb };
	struct overlay_segment *s;
	struct tunnel *t;
	s32 verdict;
	bool numbered = read_number(skb, c);

	if (capturing)
		c->numbered = 1;

	c->at.segment = r.segment = c->slot << 16 | (c->tci & 0x0fff);
	s = bpf_map_lookup_elem(&overlay_segments, &r.segment);
	c->key.vni = s ? s->vni : 0;
	if (!s || !numbered)
		return refuse_leaving(skb, c, 0, REASON_TUNNEL_UNKNOWN_VNI);
	if (!read_macs(skb, c))
		return refuse_leaving(skb, c, 0, REASON_MALFORMED);
	t = bpf_map_lookup_elem(&tunnels, &c->slot);
	verdict = t ? answer(skb, c, t) : VERDICT_NEXT;
	if (verdict != VERDICT_NEXT)
		return verdict;
	if (!tag_leaving(skb, c, s->vlan))
		return refuse_leaving(skb, c, 0, REASON_MALFORMED);
	if (capturing)
		c->numbered = 0;
	read_inner(skb, c);
	c->waiting = locate(c, t);
	if (!c->waiting) {
		if (!s->count)
			return refuse_leaving(skb, c, 0, REASON_TUNNEL_NO_ENDPOINT);
		bpf_loop(c->mac[0] & 1 ? s->several : s->count, replicate_one, &r, 0);
	}
	if (c->narrow != ANY_LENGTH)
		send_waiting(skb, c); /* the frame itself becomes an error */
	else if (address_to(skb, c, t, c->waiting)) {
		if (capturing)
			capture_left(skb, c->waiting, 0);
		return VERDICT_NEXT;
	}
	return c->narrow != ANY_LENGTH ? too_big(skb, c) : VERDICT_DROP;
}
