/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Behind which endpoints of other hosts MACs are (frame-rules §10). The tunnels' programs own the tables of these records;
 * the switch program reads them (core/outside.h). */
#pragma once
#include "core/tables.h"

enum overlay_limits {
	MAX_TUNNELS = MAX_SWITCHES,
	MAX_OVERLAY_SEGMENTS = 8192, /* of all switches */
	MAX_ENDPOINTS = 16384, /* endpoints of other hosts; 0 is none */
	MAX_SEGMENT_MEMBERS = 1024,
	MAX_LOCATIONS = 262144,
	ENDPOINT_MACS = 4096, /* learned behind one endpoint */
	LOCATION_AGEING = 600, /* seconds of silence after which a learned location does not count any more */
	LOCAL_ENDPOINTS = 8,
	OUTER_TTL = 64,
	VNI_OF_PROBES = 0xffffff, /* no segment has it: probes between endpoints, which end at the agent */
	ANY_LENGTH = 0xffff, /* no copy was refused for its length */
	TOLD_IN_SEGMENT = 0xffff, /* no tunnel has this slot */
};

enum endpoint_flag {
	ENDPOINT_NAMED = 1 << 0, /* the host was told of it, and it still counts */
	ENDPOINT_IPV6 = 1 << 1,
	ENDPOINT_FAR = 1 << 2, /* in two-tier replication: in another subnet than this host */
};

enum location_source {
	LOCATION_LEARNED = 1,
	LOCATION_ANNOUNCED = 2,
	LOCATION_STATIC = 3,
};

struct endpoint {
	be32 address[4];
	u32 flags; /* enum endpoint_flag */
	u32 slot;
	u32 held; /* how many MACs are learned behind it; the agent counts them anew from time to time */
	u32 mtu; /* the longest inner packet, untagged, that fits the path to it; 0 = not known */
};

/* What frames show of a MAC holds in their segment; what the file says of it, in the whole VNI; what the controllers say
 * of it, in one or the other. */
struct location_key {
	u32 segment; /* slot of the tunnel << 16 | number; of a whole VNI, the VNI */
	u8 mac[6];
	u16 whole; /* 0 = shown by frames; TOLD_IN_SEGMENT; of a whole VNI, the slot of the tunnel */
};

struct location {
	u32 endpoint; /* number */
	u32 source; /* enum location_source */
	u64 seen; /* ticks; of a learned one */
};
