/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* In an overlay segment the tunnel knows where stations of other hosts are, so unicast to them is for the tunnel alone
 * (S190). The tables are the tunnels': they are here once a switch of the host has a tunnel. */
#pragma once
#include "core/events.h"
#include "core/segment.h"
#include "core/location.h"

/* Prototypes of those tables; a hash may have any number of entries. */
struct any_locations {
	MAP_UINT(type, MAP_HASH);
	MAP_UINT(max_entries, 1);
	MAP_UINT(map_flags, MAP_NO_PREALLOC);
	MAP_UINT(key_size, sizeof(struct location_key));
	MAP_UINT(value_size, sizeof(struct location));
};

struct any_endpoints {
	MAP_UINT(type, MAP_ARRAY);
	MAP_UINT(max_entries, MAX_ENDPOINTS);
	MAP_UINT(key_size, sizeof(u32));
	MAP_UINT(value_size, sizeof(struct endpoint));
};

struct {
	MAP_UINT(type, MAP_ARRAY_OF_MAPS);
	MAP_UINT(max_entries, 1);
	MAP_TYPE(key, u32);
	struct any_locations *values[];
} outside_locations SEC(".maps");

struct {
	MAP_UINT(type, MAP_ARRAY_OF_MAPS);
	MAP_UINT(max_entries, 1);
	MAP_TYPE(key, u32);
	struct any_endpoints *values[];
} outside_endpoints SEC(".maps");

/* The key of what frames have shown of a MAC in the port's overlay segment. */
INLINE void outside_key(struct location_key *k, const struct port *p, u32 segment, u64 mac)
{
	k->segment = p->tunnel << 16 | (segment & VID_MASK);
	*(u32 *)k->mac = mac;
	*(u16 *)(k->mac + 4) = mac >> 32;
	k->whole = 0;
}

/* Does the entry count, and is its endpoint one that the host was told of? */
INLINE bool counts_outside(const struct location *l, u64 now)
{
	u32 zero = 0, number;
	struct endpoint *e;
	void *ends;

	if (!l || (l->source == LOCATION_LEARNED && elapsed(now, l->seen) > LOCATION_AGEING * ticks_per_second))
		return false;
	number = l->endpoint;
	ends = bpf_map_lookup_elem(&outside_endpoints, &zero);
	e = ends && number ? bpf_map_lookup_elem(ends, &number) : 0;
	return e && e->flags & ENDPOINT_NAMED;
}

/* Is it known behind which endpoint the MAC is, in the overlay segment of a port's frame? The order is that in which the
 * tunnel's program asks (overlay/leave.h). */
SEPARATE u32 is_outside(u32 half, u32 slot, u32 segment, u64 mac, u64 now)
{
	struct port *p = port_at(half, slot);
	struct location_key k;
	struct location *said;
	u32 zero = 0;
	void *all;

	if (!p || !p->vni)
		return 0;
	all = bpf_map_lookup_elem(&outside_locations, &zero);
	if (!all)
		return 0;
	outside_key(&k, p, p->tunnel, mac);
	k.segment = p->vni;
	k.whole = p->tunnel;
	said = bpf_map_lookup_elem(all, &k);
	if (said && said->source == LOCATION_STATIC)
		return counts_outside(said, now);
	outside_key(&k, p, segment, mac);
	if (counts_outside(bpf_map_lookup_elem(all, &k), now))
		return 1;
	k.whole = TOLD_IN_SEGMENT;
	if (counts_outside(bpf_map_lookup_elem(all, &k), now))
		return 1;
	return counts_outside(said, now);
}

/* The MAC was heard at a port of this host: what frames from other hosts have shown of it before counts no more. */
INLINE void forget_outside(const struct port *p, u32 segment, u64 mac)
{
	struct location_key k;
	u32 zero = 0;
	void *all;

	if (!p->vni)
		return;
	all = bpf_map_lookup_elem(&outside_locations, &zero);
	outside_key(&k, p, segment, mac);
	if (all)
		bpf_map_delete_elem(all, &k);
}
