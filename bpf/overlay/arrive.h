/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Frames that come from a tunnel (frame-rules §10): who sent them, in which segment, and what they teach. The switch
 * program then takes them as an uplink's. */
#pragma once
#include "overlay/leave.h"

/* The outer source and the VNI of the frame. */
INLINE bool read_outer(struct __sk_buff *skb, struct crossing *c)
{
	__builtin_memset(&c->from, 0, sizeof(c->from));
	c->from.slot = c->slot;
	if (recording) {
		struct crossing_record *r = recorded_crossing();

		if (!r)
			return false;
		__builtin_memcpy(c->from.address, r->from, 16);
		c->key.vni = r->vni;
		return true;
	}
	if (!bpf_skb_get_tunnel_key(skb, &c->key, sizeof(c->key), 0)) {
		c->from.address[0] = __builtin_bswap32(c->key.remote[0]);
		return true;
	}
	if (bpf_skb_get_tunnel_key(skb, &c->key, sizeof(c->key), KEY_IPV6))
		return false;
	__builtin_memcpy(c->from.address, c->key.remote, 16);
	return true;
}

/* Link control between the sender and its switch: the other host does not forward it, and this one would hand it to its
 * own stack. */
INLINE bool ends_at_a_switch(const u8 *dst)
{
	return dst[0] == 0x01 && dst[1] == 0x80 && dst[2] == 0xc2 && !dst[3] && !dst[4] && dst[5] < 0x10;
}

/* Takes one entry of the endpoint's quota; false = there is none left. */
INLINE bool take_behind(struct endpoint *e)
{
	if (*(volatile u32 *)&e->held >= ENDPOINT_MACS)
		return false;
	if (__sync_fetch_and_add(&e->held, 1) < ENDPOINT_MACS)
		return true;
	__sync_fetch_and_sub(&e->held, 1);
	return false;
}

/* Learns behind which endpoint the source is. What the file says is never overwritten. */
INLINE void learn_location(struct crossing *c, const struct tunnel *t, u32 sender, struct endpoint *e, u64 now)
{
	struct location fresh = { .endpoint = sender, .source = LOCATION_LEARNED, .seen = now }, *l;

	if (c->mac[6] & 1 || !(*(u32 *)(c->mac + 6) | *(u16 *)(c->mac + 10)))
		return;
	if (!(t->rules & TUNNEL_UNLISTED)) {
		l = said_of(c, c->mac + 6);
		if (l && l->source == LOCATION_STATIC)
			return;
	}
	__builtin_memcpy(c->at.mac, c->mac + 6, 6);
	c->at.whole = 0;
	l = bpf_map_lookup_elem(&locations, &c->at);
	if (l && l->endpoint == sender) {
		if (l->seen != now)
			l->seen = now;
		return;
	}
	if (!take_behind(e))
		return;
	if (bpf_map_update_elem(&locations, &c->at, &fresh, UPDATE_ANY))
		__sync_fetch_and_sub(&e->held, 1);
}

/* May the frame come from another host than that which sent this copy? */
INLINE bool may_be_repeated(const struct crossing *c, const struct tunnel *t, const struct endpoint *e)
{
	return t->rules & TUNNEL_TWO_TIER && c->mac[0] & 1 && !(e->flags & ENDPOINT_FAR);
}

/* Does the frame end within a second tag? The kernel could not take out the first one. */
INLINE bool ends_in_tag(struct __sk_buff *skb)
{
	be16 type = 0;

	if (!skb->vlan_present || skb->len >= ETH_HEADER + TAG)
		return false;
	return bpf_skb_load_bytes(skb, 12, &type, 2) || type == HTONS(TYPE_VLAN) || type == HTONS(TYPE_VLAN_AD);
}

/* The tag by which the switch program knows the segment. Returns false if the kernel cannot set it. */
INLINE bool tag_arrived(struct __sk_buff *skb, struct crossing *c, u32 number)
{
	u16 tci = (c->tci & 0xf000) | number;

	if (skb->vlan_present && bpf_skb_vlan_pop(skb))
		return false;
	if (bpf_skb_vlan_push(skb, HTONS(TYPE_VLAN), tci))
		return false;
	if (recording) {
		struct crossing_record *r = recorded_crossing();

		if (r) {
			r->passed = 1;
			r->tci = tci;
		}
	}
	return true;
}

/* A probe of another host's agent, from an endpoint that this host was told of: the agent's socket on the tunnel's device
 * takes it. A dry run is about guests' frames alone. */
INLINE bool is_probe(struct __sk_buff *skb, const struct crossing *c)
{
	return !recording && c->key.vni == VNI_OF_PROBES && !skb->vlan_present && skb->protocol == HTONS(TYPE_BEACON);
}

/* May the frame enter (S105)? Only from an endpoint that this host was told of, and for a segment that it has. */
INLINE s32 arrive(struct __sk_buff *skb, struct crossing *c)
{
	struct tunnel *t = bpf_map_lookup_elem(&tunnels, &c->slot);
	struct endpoint *e;
	u32 *sender, *number;

	c->bytes = skb->len + (skb->vlan_present ? TAG : 0);
	capture_arrived(skb, c->slot, REASON_NONE);
	if (capturing)
		c->numbered = 0;
	if (!read_macs(skb, c))
		return drop_arrived(skb, c, REASON_MALFORMED);
	if (!read_outer(skb, c) || !t)
		return drop_arrived(skb, c, REASON_TUNNEL_UNKNOWN_ENDPOINT);
	sender = bpf_map_lookup_elem(&endpoint_numbers, &c->from);
	e = sender ? named_endpoint(*sender) : 0;
	if (!e)
		return drop_arrived(skb, c, REASON_TUNNEL_UNKNOWN_ENDPOINT);
	if (is_probe(skb, c))
		return VERDICT_PASS;
	c->tci = skb->vlan_present ? skb->vlan_tci : 0;
	c->name.slot = c->slot;
	c->name.vni = c->key.vni;
	c->name.vlan = c->tci & 0x0fff;
	number = bpf_map_lookup_elem(&overlay_numbers, &c->name);
	if (!number || (skb->vlan_present && skb->vlan_proto != HTONS(TYPE_VLAN)))
		return drop_arrived(skb, c, REASON_TUNNEL_UNKNOWN_VNI);
	if (ends_at_a_switch(c->mac))
		return drop_arrived(skb, c, REASON_GUEST_LINK_CONTROL);
	if (ends_in_tag(skb))
		return drop_arrived(skb, c, REASON_MALFORMED);
	c->at.segment = c->slot << 16 | (*number & 0xffff);
	if (c->mac[0] & 1 && e->flags & ENDPOINT_FAR)
		repeat(skb, c);
	hear(skb, c, t, 0);
	if (!tag_arrived(skb, c, *number & 0x0fff))
		return drop_arrived(skb, c, REASON_MALFORMED);
	if (t->rules & TUNNEL_LEARNS && !may_be_repeated(c, t, e))
		learn_location(c, t, *sender, e, clock());
	return VERDICT_NEXT;
}
