/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The tables of overlay segments (frame-rules §10). To the switch program an overlay segment is a VLAN of a switch whose
 * only uplink is the tunnel: its number stands for a VNI and the VLAN inside. The programs of the tunnel's device turn
 * one into the other, and know who is where. Their tables are apart from the plan's: an entry is added before a plan uses
 * it, and removed when no run of a program can use it any more. */
#pragma once
#include "core/location.h"

/* Of the errors that tell a guest how long packets may be (overlay/toobig.h). */
enum error_limits {
	QUOTE_IPV4 = 548, /* bytes of the packet in an error of 576 (RFC 1812 section 4.3.2.3) */
	QUOTE_IPV6 = 1232, /* in one of 1280 (RFC 4443 section 2.4) */
	LEAST_IPV4 = 576, /* a shorter MTU is not told: guests would not believe it */
	LEAST_IPV6 = 1280,
	ERRORS_PER_SECOND = 100, /* for each port */
	ERRORS_AT_ONCE = 100,
	CSUM_MOST = 512, /* bytes that the kernel adds up at once */
};

enum tunnel_rule {
	TUNNEL_LEARNS = 1 << 0,
	TUNNEL_TWO_TIER = 1 << 1, /* a frame for several may be a copy that a proxy repeated */
	TUNNEL_UNLISTED =
		1 << 2, /* the file says of no MAC where it is: what frames show need not be looked up twice */
};

/* The tunnel of a switch, by the tunnel's slot. */
struct tunnel {
	be32 own4[LOCAL_ENDPOINTS];
	be32 own6[LOCAL_ENDPOINTS][4];
	u32 ipv4; /* how many endpoints of its own the host has, by family */
	u32 ipv6;
	u32 mtu4; /* the longest inner packet, untagged, that fits the underlay, by family of the outer addresses */
	u32 mtu6;
	u32 rules; /* enum tunnel_rule */
	u32 hold; /* seconds for which a binding counts after its owner was heard; 0 = the tunnel answers for nobody */
	u64 reserved[4];
};

/* slot of the tunnel << 16 | number of the segment */
struct overlay_segment {
	u32 vni;
	u16 vlan; /* inside the VNI, 0 = untagged */
	u16 count;
	/* In two-tier replication a frame for a group goes to the first of the members, as a proxy in each other subnet
	 * repeats it there; first of all are those of this host's own subnet, for which this host is a proxy. */
	u16 several;
	u16 near;
	u16 member[MAX_SEGMENT_MEMBERS]; /* numbers of the endpoints with members */
};

struct segment_name {
	u32 slot; /* of the tunnel */
	u32 vni;
	u32 vlan;
};

struct endpoint_name {
	u32 slot; /* of the tunnel */
	be32 address[4]; /* IPv4 in the first, in network byte order */
};

enum trunk_flag {
	TRUNK_UNTAGGED = 1 << 0, /* the trunk has the VLAN 0, that of untagged frames */
	TRUNK_CHANGES = 1 << 1, /* the port becomes such a trunk or ceases to be one: no frame passes */
};

/* A trunk inside a VNI, by the port's slot. */
struct overlay_trunk {
	u32 slot; /* of the tunnel */
	u32 vni;
	u32 flags; /* enum trunk_flag */
	u32 reserved;
};

#define OVERLAY_HASH(table, k, v, n) \
	struct { \
		MAP_UINT(type, MAP_HASH); \
		MAP_UINT(max_entries, n); \
		MAP_UINT(map_flags, MAP_NO_PREALLOC); \
		MAP_TYPE(key, k); \
		MAP_TYPE(value, v); \
	} table SEC(".maps")

OVERLAY_HASH(tunnels, u32, struct tunnel, MAX_TUNNELS);
OVERLAY_HASH(overlay_segments, u32, struct overlay_segment, MAX_OVERLAY_SEGMENTS);
OVERLAY_HASH(overlay_numbers, struct segment_name, u32, MAX_OVERLAY_SEGMENTS);
OVERLAY_HASH(endpoint_numbers, struct endpoint_name, u32, MAX_ENDPOINTS);
OVERLAY_HASH(overlay_trunks, u32, struct overlay_trunk, MAX_PORTS);
OVERLAY_HASH(locations, struct location_key, struct location, MAX_LOCATIONS);

struct {
	MAP_UINT(type, MAP_ARRAY);
	MAP_UINT(max_entries, MAX_ENDPOINTS);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct endpoint);
} endpoints SEC(".maps");

/* The kernel's struct bpf_tunnel_key. IPv4 addresses are numbers, IPv6 addresses are as on the wire. */
struct tunnel_key {
	u32 vni;
	u32 remote[4];
	u8 tos;
	u8 ttl;
	u16 flags;
	u32 label;
	u32 local[4];
};

enum tunnel_key_flag {
	KEY_IPV6 = 1 << 0,
	KEY_NO_CHECKSUM = 1 << 1,
	KEY_DONT_FRAGMENT = 1 << 2,
};

static s64 (*const bpf_skb_get_tunnel_key)(struct __sk_buff *skb, void *key, u32 size, u64 flags) = (void *)20;
static s64 (*const bpf_skb_set_tunnel_key)(struct __sk_buff *skb, void *key, u32 size, u64 flags) = (void *)21;

INLINE struct endpoint *named_endpoint(u32 number)
{
	struct endpoint *e = number ? bpf_map_lookup_elem(&endpoints, &number) : 0;

	return e && e->flags & ENDPOINT_NAMED ? e : 0;
}

/* What this CPU knows of the frame that is on its way to or from a tunnel. */
struct crossing {
	struct tunnel_key key;
	struct endpoint_name from;
	struct segment_name name;
	struct location_key at;
	u32 slot; /* of the tunnel */
	u32 bytes; /* of a frame that arrived; of the inner packet, or the longest into which the kernel will cut it */
	u32 own; /* chooses this host's endpoint */
	u32 tos;
	u32 waiting; /* number of the member whose copy is next */
	u32 copies; /* handed to the device */
	u32 refused; /* enum reason of a copy that was refused */
	u32 narrow; /* the longest packet that every tunnel would have taken which refused a copy for its length */
	u32 sender; /* slot of the port that an error goes to */
	u16 tci;
	u8 mac[12]; /* destination, source */
	u8 head[4];
	u8 numbered; /* of the capturing build: the tag beside the frame is the number of its segment */
	u8 reserved;
};

struct {
	MAP_UINT(type, MAP_PERCPU_ARRAY);
	MAP_UINT(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct crossing);
} crossings SEC(".maps");

INLINE struct crossing *crossing_of_cpu(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&crossings, &zero);
}
