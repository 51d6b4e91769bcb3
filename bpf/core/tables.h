/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The tables. Plan tables have two halves; control.generation says which half is active. The program reads it once
 * per frame, and reads everything of the plan from that half (K11). The agent writes the idle half through a memory
 * map. Tables of state (learned MACs, marks, counters) exist once. New fields of a record are taken from its
 * reserved bytes. */
#pragma once
#include "core/kernel.h"
#include "core/reasons.h"

enum limits {
	MAX_PORTS = 2048, /* slots of ports and uplinks; slot 0 is nobody */
	MAX_SWITCHES = 32,
	MAX_VLAN_SETS = MAX_PORTS, /* no two ports need share one */
	MAX_TEAMS = MAX_PORTS,
	MAX_GROUPS = 4096, /* distinct sets of receivers; group 0 is empty */
	MAX_MEMBER_CHUNKS = 8192,
	CHUNK = 32,
	SEGMENTS_PER_SWITCH = 8192, /* VID, and 4096 + VID for 802.1ad */
	MAX_DIRECT_IFINDEX = 65536,
	OWNER_BUCKET_BITS = 12,
	OWNER_BUCKETS = 1 << OWNER_BUCKET_BITS,
	OWNERS_PER_BUCKET = 4,
	MAX_SAME_MAC = 4, /* ports of a switch that can own one MAC: it moves between them, or they are siblings */
	DEFAULT_MACS = 131072, /* of all ports; the agent may set another number */
	MAX_MARKS = 65536,
	MAX_GUARD_ADDRESSES = 16384, /* of all ports; those with the same list share it */
	GUARD_ADDRESSES_PER_PORT = 128, /* those listed at the port, and a host port's own */
	MAX_RECORDS = 256,
	MAX_FRAME = 9216, /* longest frame that fits into a record */
	NAME_LEN = 64,
};

enum port_flag {
	PORT_CONNECTED = 1 << 0,
	PORT_UPLINK = 1 << 1,
	PORT_UP = 1 << 2,
	PORT_BLOCKED = 1 << 3,
	PORT_PEER_REDIRECT = 1 << 4, /* a veth whose other end is in another network namespace */
	PORT_LEARNS = 1 << 5,
	PORT_FLOODS = 1 << 6, /* wants unknown unicast */
	PORT_LIMIT_DROPS = 1 << 7,
	PORT_PROMISCUOUS = 1 << 8,
	PORT_FORGED_OK = 1 << 9,
	PORT_TX_UPLINK = 1 << 10,
	PORT_VIOLATION = 1 << 11, /* its owner uses a MAC it may not use */
	PORT_OUTER_AD = 1 << 12,
	PORT_CARRIES_HOST = 1 << 13, /* an uplink whose host is a member of its segments (stage/host.h) */
	PORT_STORM_CONTROL = 1 << 14, /* storm control limits what the port floods (stage/storm.h) */
	PORT_UNKNOWN_LEAVES =
		1 << 15, /* its frames to unknown destinations only go to an uplink: no other port or limit applies */
	PORT_METER_INGRESS = 1 << 24, /* frames from the port that are delivered are metered (meter/meter.h) */
	PORT_METER_EGRESS = 1 << 25, /* copies handed to the port are metered */
	/* properties of its switch */
	SWITCH_REVERSE_PATH = 1 << 16,
	SWITCH_REVERSE_PATH_PROMISCUOUS = 1 << 17,
	SWITCH_BLOCKS_BPDU = 1 << 18,
	SWITCH_HAS_UPLINKS = 1 << 19,
	SWITCH_HAS_PROMISCUOUS = 1 << 20,
	SWITCH_LEARNS = 1 << 21,
	SWITCH_METERS = 1 << 22, /* one of its ports or uplinks is metered */
	SWITCH_PASSES_CONTROL = 1 << 23, /* one of its ports may speak a link control protocol (stage/control.h) */
};

/* More rules of a port: bits of port.rules. A frame to which none of them applies need not read the word. */
enum port_rule {
	/* link control that the port's owner may send (S97) */
	RULE_PASS_LACP = 1 << 0,
	RULE_PASS_LLDP = 1 << 1,
	RULE_PASS_EAPOL = 1 << 2,
	RULE_PASS_PTP = 1 << 3,
	RULE_PASS_BPDU = 1 << 4,
	RULE_PASS_CDP = 1 << 5,
	RULE_TUNNEL = 1 << 9, /* of an uplink: a tunnel, which gives no frame back that left by it */
	RULE_LOOP_BLOCKED = 1 << 8, /* with PORT_BLOCKED: a loop goes through the port, no policy blocks it */
	RULE_WAITS = 1 << 12, /* the port waits for its guest, until stage/wait.h says that the wait is over */
	RULE_LEFT = 1 << 14, /* with RULE_WAITS: its guest was here, and has left */
	RULE_SIBLINGS = 1 << 13, /* the port has siblings: see port.siblings */
	RULE_GUARDS_ADDRESSES = 1 << 20, /* its owner may use only its own IP addresses (stage/guard.h) */
	RULE_NO_DHCP_SERVER = 1 << 21, /* its owner may not answer DHCP */
	RULE_NO_ROUTER = 1 << 22, /* its owner may not send router advertisements */
	RULE_NO_HEALTH_PROBES = 1 << 23, /* its owner may not send what looks like a probe between hosts */
	RULES_GUARD_PACKETS = RULE_GUARDS_ADDRESSES | RULE_NO_DHCP_SERVER | RULE_NO_ROUTER,
	RULES_GUARD = RULES_GUARD_PACKETS | RULE_NO_HEALTH_PROBES,
	RULE_SHARES_MACS = 1 << 16, /* learn_limit is the port's quota of the host's table, below its own limit */
};

/* Marks of frames within the host. No guest can set one: the kernel clears a mark when the frame crosses into another
 * network namespace, and a tap's owner cannot set any. */
enum frame_mark {
	MARK_TO_HOST = 0x48644c68, /* handed to the host's stack by a switch: the uplink's program lets it pass */
	MARK_AGENT = 0x48644c61, /* sent by the agent itself: it leaves by the uplink, and is not looked up */
	MARK_NOT_NEIGHBOUR =
		0x48644c6e, /* link control for the host's stack that no neighbour sent: it was tagged, or came from a port (S98) */
};

/* Indexes of a port in tables of stages to come, each of 4 bytes in both halves: a plan names them and changes them at
 * one instant, like everything else of a port. */
enum port_index {
	INDEX_RULES = 0,
	INDEX_SHAPING = 1,
	INDEX_PRIVATE_VLAN = 2,
	INDEX_MIRROR = 3,
	INDEX_ROUTER = 4, /* and what is heard of addresses and groups */
	PORT_INDEXES = 5,
};

enum vlan_mode { VLAN_NONE = 0, VLAN_ACCESS = 1, VLAN_TRUNK = 2 };
enum team_policy { TEAM_FIXED = 0, TEAM_SOURCE_MAC = 1, TEAM_IP_HASH = 2 };

/* A team's choice: an uplink's slot, or a LAG: LAG_CHOICE, the fields of its hash, and its table of members. */
enum choice {
	LAG_MEMBERS = 0x07ff, /* index of a struct team, by the LAG's hash */
	LAG_HASH_VLAN = 1 << 12,
	LAG_HASH_IP = 1 << 13,
	LAG_HASH_PORT = 1 << 14,
	LAG_CHOICE = 1 << 15,
};

enum frame_class { CLASS_UNICAST = 0, CLASS_MULTICAST = 1, CLASS_BROADCAST = 2, CLASSES = 3 };

/* One port or uplink of the plan. */
struct port {
	u32 ifindex;
	u32 flags; /* enum port_flag */
	u8 mac[6]; /* effective MAC; for an uplink the device's */
	u16 access; /* VID of an access port */
	u8 vlan_mode; /* enum vlan_mode; an uplink counts as a trunk */
	u8 team_policy; /* enum team_policy */
	u8 switch_id;
	u8 reserved1;
	u16 vlan_set;
	u16 uplink; /* choice for TEAM_FIXED, 0 = none usable; for an uplink the LAG that it is a member of, 0 = none */
	u16 team; /* table for the hashing policies */
	u16 sampling; /* packets that are skipped after each metered one; 0 = every packet is metered */
	u32 mtu; /* of the device and of its owner's end, layer 3 */
	u32 switch_mtu;
	u32 learn_limit;
	u32 rules; /* enum port_rule */
	u32 wait; /* the wait's number, with RULE_WAITS */
	u64 ageing; /* ticks */
	u32 storm_rate
		[CLASSES]; /* flooded frames allowed per second, by class; unicast: to unknown destinations; 0 = any number */
	u32 storm_depth[CLASSES]; /* frames at once */
	u32 guard_first; /* index in guard_addresses: first those of IPv4, then those of IPv6 */
	u16 guard_ipv4; /* how many */
	u16 guard_ipv6;
	/* How often the slot has been given to a port, this one included. The state of a slot in another table names the
	 * epoch that it is of: what an earlier port at the slot left behind has another one. */
	u32 epoch;
	u32 reserved_index[PORT_INDEXES]; /* enum port_index; 0 = none */
	u32 vni; /* of a port in an overlay segment, 0 = none */
	u32 reserved;
	u16 tunnel; /* slot of the tunnel of its switch, with vni */
	u16 reserved4;
	u16 siblings; /* family of ports of one owner that may use each other's MACs, 0 = none (stage/sibling.h) */
	u16 next_owner; /* slot of the next port with the same MAC, 0 = none; see first_awake */
};

struct vlan_set {
	u64 bits[64];
};

/* The choice for each value of an 8-bit hash; in a LAG's table a slot; 0 = none usable. */
struct team {
	u16 uplink[256];
};

/* The group of each of 32 consecutive segments. */
struct segment_chunk {
	u16 group[CHUNK];
};

/* A run of members: index of the first chunk, number of slots. */
struct member_run {
	u32 chunk;
	u32 count;
};

/* The receivers of a segment: all (an uplink among them stands for the host behind it), those that receive unknown
 * unicast, those that receive everything. */
struct group {
	struct member_run all;
	struct member_run unknown;
	struct member_run promiscuous;
};

struct member_chunk {
	u16 slot[CHUNK];
};

struct control {
	u32 generation; /* its lowest bit is the number of the active half */
	u32 reserved1;
	u64 owner_seed[2]; /* one for each half; odd */
	u64 reserved[5];
};

/* Own MACs and the ports that have them: a hash table that the agent builds as a whole, with a seed for which no bucket
 * overflows. A look-up is one multiplication and one array access, a third of the cost of the kernel's hash. key:
 * (switch id + 1) << 48 | MAC, 0 = free. */
struct owner_bucket {
	u64 key[OWNERS_PER_BUCKET];
	u32 slot[OWNERS_PER_BUCKET];
	u64 reserved[2];
};

/* segment: (switch id + 1) << 16 | 802.1ad << 12 | VID, never 0. */
struct mac_key {
	u32 segment;
	u8 mac[6];
	u16 reserved;
};

struct learned {
	u64 seen; /* ticks */
	u64 sent; /* ticks + 1 of the last frame counted as sent (S91); 0 = none */
	u32 slot;
	u32 outside; /* ticks, the lower half, of the first frame from outside that is too late for an echo; 0 = none */
};

/* The last frame that a port sent from its own MAC. This is separate from marks, so that the common frame needs no
 * hash. */
struct own_mark {
	u64 at;
	struct mac_key key; /* segment 0 = none */
	u32 reserved;
};

struct counters {
	u64 packets_in[CLASSES];
	u64 bytes_in[CLASSES];
	u64 packets_out[CLASSES];
	u64 bytes_out[CLASSES];
	u64 bytes_in_from_pnic;
	u64 bytes_out_to_pnic;
	u64 delivered;
	u64 packets_to_host;
	u64 mac_moves;
	u64 mac_not_learned_allowed;
	/* for an uplink that carries the host's own traffic */
	u64 packets_from_host; /* the host's own frames that were looked up */
	u64 packets_from_host_kept; /* of these, delivered to a port here instead of leaving */
	u64 packets_from_host_dropped; /* of these, refused by the port they are for */
	u64 unknown_not_flooded; /* frames for unknown destinations that storm control kept from the ports but not from the uplink */
	u64 unknown_flooded; /* frames for unknown destinations of which ports got a copy */
	u64 reserved[1];
	u64 drops[REASONS_PER_CPU]; /* by enum reason, of frames received here */
	u64 refused[REASONS_PER_CPU]; /* by enum reason, of copies for this port */
};

/* The counters of the other reasons, from REASONS_PER_CPU on. All CPUs share them and add atomically. */
struct rare_counters {
	u64 drops[REASONS_RARE];
	u64 refused[REASONS_RARE];
};

_Static_assert(sizeof(struct port) % 64 == 0, "records of two ports share no cache line");
_Static_assert(sizeof(struct counters) % 8 == 0, "counters are numbers of 8 bytes: the agent adds them up");
_Static_assert(sizeof(struct rare_counters) % 64 == 0, "counters of two slots share no cache line");

/* How much of its storm control budget a port has spent, by class; see stage/storm.h. All zero means nothing spent. */
struct storm_bucket {
	u64 word[CLASSES]; /* ticks (32 bits) << 32 | frames × ticks a second */
	u64 reserved[5]; /* a cache line for each port */
};

/* An address or a prefix that a port's owner may use. An IPv4 address is in the first four bytes. */
struct guard_address {
	u64 address[2]; /* in network byte order */
	u64 mask[2];
};

/* Which port a slot belongs to, and which switch an id, so that an agent that starts can adopt them. */
struct port_name {
	u8 switch_name[NAME_LEN];
	u8 name[NAME_LEN];
	u32 number; /* the port's number, as users see it */
	u32 left; /* 1: the port is gone, but flows counted at it are not drained yet */
	u32 epoch; /* how often the slot has been given to a port; stays when the slot is free */
	u32 reserved;
};
struct switch_name {
	u8 name[NAME_LEN];
};

#define PLAN_TABLE(table, record, n) \
	struct { \
		MAP_UINT(type, MAP_ARRAY); \
		MAP_UINT(max_entries, 2 * (n)); \
		MAP_UINT(map_flags, MAP_MMAPABLE); \
		MAP_TYPE(key, u32); \
		MAP_TYPE(value, record); \
	} table SEC(".maps")

PLAN_TABLE(ports, struct port, MAX_PORTS);
PLAN_TABLE(vlan_sets, struct vlan_set, MAX_VLAN_SETS);
PLAN_TABLE(teams, struct team, MAX_TEAMS);
PLAN_TABLE(segments, struct segment_chunk, MAX_SWITCHES *SEGMENTS_PER_SWITCH / CHUNK);
PLAN_TABLE(groups, struct group, MAX_GROUPS);
PLAN_TABLE(members, struct member_chunk, MAX_MEMBER_CHUNKS);

PLAN_TABLE(owners, struct owner_bucket, OWNER_BUCKETS);
PLAN_TABLE(guard_addresses, struct guard_address, MAX_GUARD_ADDRESSES);

struct {
	MAP_UINT(type, MAP_ARRAY);
	MAP_UINT(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct control);
} control SEC(".maps");

/* ifindex → slot; ifindexes only grow, so those beyond the array's end are in a hash. */
struct {
	MAP_UINT(type, MAP_ARRAY);
	MAP_UINT(max_entries, MAX_DIRECT_IFINDEX);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u32);
} slot_by_ifindex SEC(".maps");

struct {
	MAP_UINT(type, MAP_HASH);
	MAP_UINT(max_entries, MAX_PORTS);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u32);
} slot_by_high_ifindex SEC(".maps");

struct {
	MAP_UINT(type, MAP_HASH);
	MAP_UINT(max_entries, DEFAULT_MACS);
	MAP_TYPE(key, struct mac_key);
	MAP_TYPE(value, struct learned);
} macs SEC(".maps");

/* The number of MACs learned per slot, compared with the port's limit. */
struct {
	MAP_UINT(type, MAP_ARRAY);
	MAP_UINT(max_entries, MAX_PORTS);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u64);
} held SEC(".maps");

struct {
	MAP_UINT(type, MAP_ARRAY);
	MAP_UINT(max_entries, MAX_PORTS);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct own_mark);
} own_marks SEC(".maps");

struct {
	MAP_UINT(type, MAP_ARRAY);
	MAP_UINT(max_entries, MAX_PORTS);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct storm_bucket);
} storm_buckets SEC(".maps");

/* Sources that were neither a port's own MAC nor learned, and when they last sent. A flood of random sources displaces
 * only other marks: the reflection check may then miss, delivery does not change. */
struct {
	MAP_UINT(type, MAP_LRU_HASH);
	MAP_UINT(max_entries, MAX_MARKS);
	MAP_TYPE(key, struct mac_key);
	MAP_TYPE(value, u64);
} marks SEC(".maps");

struct {
	MAP_UINT(type, MAP_PERCPU_ARRAY);
	MAP_UINT(max_entries, MAX_PORTS);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct counters);
} counts SEC(".maps");

/* The counts of a slot from tables of an earlier layout; the agent adds them. */
struct {
	MAP_UINT(type, MAP_ARRAY);
	MAP_UINT(max_entries, MAX_PORTS);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct counters);
} counts_before SEC(".maps");

struct {
	MAP_UINT(type, MAP_ARRAY);
	MAP_UINT(max_entries, MAX_PORTS);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct rare_counters);
} rare_counts SEC(".maps"), rare_counts_before SEC(".maps");

struct {
	MAP_UINT(type, MAP_ARRAY);
	MAP_UINT(max_entries, MAX_PORTS);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct port_name);
} port_names SEC(".maps");

struct {
	MAP_UINT(type, MAP_ARRAY);
	MAP_UINT(max_entries, MAX_SWITCHES);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct switch_name);
} switch_names SEC(".maps");

/* Updating this map of maps returns after one RCU grace period, exactly when no run uses the old half any more (K9). */
struct grace_inner {
	MAP_UINT(type, MAP_ARRAY);
	MAP_UINT(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u32);
};
struct {
	MAP_UINT(type, MAP_ARRAY_OF_MAPS);
	MAP_UINT(max_entries, 1);
	MAP_TYPE(key, u32);
	struct grace_inner *values[];
} grace SEC(".maps");
