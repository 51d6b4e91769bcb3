/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Where flows are counted. There are two sets of tables: control says which one is written; the agent drains the other (K34).
 * In a set, each CPU has
 * - places: array entries that need no call, for the first flows and for those with the most traffic;
 * - tables of its own for the other flows. The agent replaces a table that fills by a larger one, so that memory follows the
 *   traffic and not the number of CPUs. Until it has grown, flows that do not fit are counted in a table that all CPUs share. */
#pragma once
#include "core/tables.h"

enum place_limits {
	FLOW_PLACES_BITS = 15,
	FLOW_PLACES = 1 << FLOW_PLACES_BITS, /* the most that a CPU has */
	BUCKET = 4, /* cells that a flow may have, of a cache line */
	PLACE_PATIENCE = 32, /* frames in a row that find a place taken before it is given up */
	/* How flows begin at places: 1/2^shift of the cells are used, by programs that know places of this layout; 0 = by none. */
	PLACES_SHIFTS = 15,
	PLACES_LAYOUT_SHIFT = 16,
	PLACES_LAYOUT = 1, /* raised when places, or what is in them, come to look or mean otherwise */
};

volatile const u32 meter_cpus = 1; /* possible CPUs */
volatile const u32 place_cells = FLOW_PLACES; /* places of a CPU, and cells: the fewer, the more CPUs there are */
volatile const u32 place_mask = FLOW_PLACES - 1; /* of them those that may be taken, less 1 */
volatile const u32 place_patience = PLACE_PATIENCE;
volatile const u32 places_layout = PLACES_LAYOUT;

enum meter_limits {
	FLOW_EGRESS = 1 << 15, /* of the point in a key: copies handed to it; without it frames from it */
	FLOW_POOLS = MAX_PORTS, /* first index in flow_rooms of the quotas that the ports of a switch share */
	FLOW_ROOMS = MAX_PORTS + MAX_SWITCHES,
};

/* An IPv4 flow. Half the cost of a look-up is hashing the key, so IPv4 has a smaller key of its own. Addresses and
 * ports are as in the frame. */
struct flow_key {
	u16 point; /* slot, and FLOW_EGRESS */
	u16 vlan; /* VID, and SEGMENT_AD */
	u8 macs[12]; /* destination, source */
	u8 addresses[8]; /* source, destination */
	u8 ports[4]; /* source, destination; of ICMP 0, 0, type, code */
	u8 protocol;
	u8 reserved[3];
};

/* Any flow. */
struct wide_flow_key {
	u16 point;
	u16 vlan;
	u8 macs[12];
	u8 addresses[32]; /* an IPv4 address is in the first 4 of its 16 bytes */
	u8 ports[4];
	u16 type; /* EtherType */
	u8 protocol;
	u8 reserved;
};

/* What was counted of a flow, by the packets that its frames stand for. */
struct flow {
	u64 packets;
	u64 bytes; /* layer 3 */
	u64 frame_bytes;
	u32 first; /* ticks, the lower half */
	u32 last;
	u16 in; /* slots of the last frame; 0 = none or several */
	u16 out;
	u16 tcp_flags;
	u8 tos; /* of the first packet */
	u8 min_ttl;
	u8 max_ttl;
	u8 reserved[7];
};

/* A place for one flow of a round. Nothing clears it: it becomes free with the next round. A frame of a flow writes
 * only the first of the two cache lines. The description of the tables records its size alone: a change that keeps
 * the size must also change the layout of flow_places. */
struct flow_place {
	u64 tag; /* round << 1 | 1 if the key is wide */
	struct flow flow;
	u64 patience; /* frames of other flows that may find it taken before it is theirs */
	struct wide_flow_key key; /* of an IPv4 flow a struct flow_key */
	u64 reserved;
};

enum place_words {
	PLACE_WORDS = sizeof(struct flow_place) / 8,
};

/* Places are taken one after the other. A cell of 32 bits says whose one is: 1 and the last 11 bits of the round, 5 of the key's hash, its number. One
 * of another round is free. One of 2,048 rounds ago looks like one that is taken: that costs what a taken one does, as place and key decide. */
struct flow_places {
	u64 used; /* lower half of the round << 32 | places taken in it */
	u64 reserved[7];
	u64 words[FLOW_PLACES / 2 + FLOW_PLACES * PLACE_WORDS]; /* place_cells cells, and as many places */
};

struct meter_control {
	u64 round; /* the set that is written is round & 1 */
	u64 drained; /* the last round that was drained; the agent's */
	/* How flows begin at the places of a set, enum place_limits. The agent closes them before it leaves for one that may not look there, and shifts
	 * while a set is not written, so that few flows use few lines of memory. Here, as every frame reads this line and none writes it; programs of
	 * another version read it too, whose places may look otherwise. */
	u64 places[2];
	u64 reserved[4];
};

/* Counts of a point. Per CPU, never reset. */
struct meter_point {
	u64 observed
		[2]; /* packets, by direction, that were metered or sampled out; where every packet is metered none is counted here */
	u64 lost_packets; /* their flow did not fit */
	u64 lost_bytes;
	u64 lost_frame_bytes;
	u64 lost_flows;
	u32 skip[2]; /* packets until the next that is metered, by direction */
	u64 room; /* lower half of the round << 32 | flows of the port that this CPU has reserved and not begun */
};

/* The quota for the flows of one port's frames, wherever they are observed, or of what the ports of a switch share. */
struct flow_room {
	u64 taken; /* lower half of the round << 32 | flows that CPUs have reserved */
	u32 limit;
	u32 pool; /* where to look when it is taken, 0 = nowhere */
	u64 reserved[6]; /* a cache line each */
};

/* What is added to a flow. */
struct meter_amount {
	u64 packets;
	u64 bytes;
	u64 frame_bytes;
	u32 now;
	u32 in_out;
};

/* The way of the frame, in another: where it came in, where it goes out, its segment, and whose room its flow takes. */
enum meter_way {
	WAY_OUT_SHIFT = 16,
	WAY_VLAN_SHIFT = 32,
	WAY_ORIGIN_SHIFT = 48,
};

/* What is to be metered of the frame that was read. */
struct meter_ask {
	u64 what; /* enum meter_what */
	u64 way; /* enum meter_way */
	u64 now;
	u64 round;
	u64 places; /* of its set: as in struct meter_control */
};

/* Where a flow that was looked for may have a place. */
struct meter_cell {
	u32 at; /* a cell of its bucket: the first that is free, if one is */
	u32 none; /* no cell is free, or no place */
	u32 mark; /* the new content of the cell, without the place's number */
	u32 reserved;
};

/* Scratch memory of this CPU for a frame, filled once for all points: the stack is too small. */
struct meter_scratch {
	struct flow_key key;
	struct wide_flow_key wide_key;
	struct flow fresh;
	struct meter_amount amount;
	struct meter_ask ask;
	struct meter_cell cell;
	u64 full[2]; /* the round in which this CPU's table was full: of IPv4, of others */
	u32 wide; /* the key is the wide one */
	u32 packets; /* that the frame stands for */
	/* bytes of layer 3 and of the frame without its tag: of each packet but the last, and of that */
	u32 bytes;
	u32 last_bytes;
	u32 frame_bytes;
	u32 last_frame_bytes;
	u16 tcp_flags;
	u8 tos;
	u8 ttl;
	u32 reserved;
};

struct flow_table {
	MAP_UINT(type, MAP_HASH);
	MAP_UINT(max_entries, 1);
	MAP_TYPE(key, struct flow_key);
	MAP_TYPE(value, struct flow);
};
struct wide_flow_table {
	MAP_UINT(type, MAP_HASH);
	MAP_UINT(max_entries, 1);
	MAP_TYPE(key, struct wide_flow_key);
	MAP_TYPE(value, struct flow);
};
struct place_table {
	MAP_UINT(type, MAP_ARRAY);
	MAP_UINT(max_entries, 1);
	MAP_UINT(map_flags, MAP_MMAPABLE);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct flow_places[1]); /* the compiler does not describe what is pointed to alone */
};
struct shared_flow_table {
	MAP_UINT(type, MAP_HASH);
	MAP_UINT(max_entries, 1);
	MAP_UINT(map_flags, MAP_NO_PREALLOC);
	MAP_TYPE(key, struct wide_flow_key);
	MAP_TYPE(value, struct flow);
};

/* Each CPU's tables, those of the second set behind those of the first: twice meter_cpus places. */
struct {
	MAP_UINT(type, MAP_ARRAY_OF_MAPS);
	MAP_UINT(max_entries, 2);
	MAP_TYPE(key, u32);
	struct flow_table *values[];
} flows SEC(".maps");

struct {
	MAP_UINT(type, MAP_ARRAY_OF_MAPS);
	MAP_UINT(max_entries, 2);
	MAP_TYPE(key, u32);
	struct wide_flow_table *values[];
} wide_flows SEC(".maps");

struct {
	MAP_UINT(type, MAP_ARRAY_OF_MAPS);
	MAP_UINT(max_entries, 2);
	MAP_TYPE(key, u32);
	struct place_table *values[];
} flow_places SEC(".maps");

struct {
	MAP_UINT(type, MAP_ARRAY_OF_MAPS);
	MAP_UINT(max_entries, 2);
	MAP_TYPE(key, u32);
	struct shared_flow_table *values[];
} shared_flows SEC(".maps");

struct {
	MAP_UINT(type, MAP_ARRAY);
	MAP_UINT(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct meter_control);
} meter_control SEC(".maps");

struct {
	MAP_UINT(type, MAP_PERCPU_ARRAY);
	MAP_UINT(max_entries, MAX_PORTS);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct meter_point);
} meter_points SEC(".maps");

struct {
	MAP_UINT(type, MAP_ARRAY);
	MAP_UINT(max_entries, FLOW_ROOMS);
	MAP_UINT(map_flags, MAP_MMAPABLE);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct flow_room);
} flow_rooms SEC(".maps");

struct {
	MAP_UINT(type, MAP_PERCPU_ARRAY);
	MAP_UINT(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct meter_scratch);
} meter_scratch SEC(".maps");

INLINE struct meter_scratch *meter_scratch_of_cpu(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&meter_scratch, &zero);
}
