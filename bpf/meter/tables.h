/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Where flows are counted. There are two sets of tables: control says which one is written; the agent drains the
 * other (K34). In a set, each CPU has
 *
 *  - fast slots ("places" in the code): array entries that need no call, for the first flows and those with the most
 *    traffic;
 *  - tables of its own for the other flows. The agent replaces a table that fills by a larger one, so that memory
 *    follows the traffic and not the number of CPUs. Until it has grown, flows that do not fit are counted in a table
 *    that all CPUs share. */
#pragma once
#include "core/tables.h"

enum place_limits {
	FLOW_PLACES_BITS = 15,
	FLOW_PLACES = 1 << FLOW_PLACES_BITS, /* the most that a CPU has */
	BUCKET = 4, /* cells that a flow may have; they share a cache line */
	PLACE_PATIENCE = 32, /* frames in a row that find a slot taken before its flow loses it */
	/* Whether flows begin in fast slots: 1/2^shift of the cells are used, by programs that know this layout of
	 * slots; 0 = no fast slots. */
	PLACES_SHIFTS = 15,
	PLACES_LAYOUT_SHIFT = 16,
	PLACES_LAYOUT = 1, /* raised when the layout or the meaning of fast slots changes */
};

volatile const u32 meter_cpus = 1; /* possible CPUs */
volatile const u32 place_cells = FLOW_PLACES; /* fast slots of a CPU, and cells: the more CPUs, the fewer */
volatile const u32 place_mask = FLOW_PLACES - 1; /* the number of slots that flows may take, minus 1 */
volatile const u32 place_patience = PLACE_PATIENCE;
volatile const u32 places_layout = PLACES_LAYOUT;

enum meter_limits {
	FLOW_EGRESS = 1 << 15, /* part of a key's point: copies handed to it; without it frames from it */
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
	u8 ports[4]; /* source, destination; for ICMP 0, 0, type, code */
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

/* The counts of a flow, in packets that its frames stand for. */
struct flow {
	u64 packets;
	u64 bytes; /* layer 3 */
	u64 frame_bytes;
	u32 first; /* ticks, the lower half */
	u32 last;
	u16 in; /* slots that the last frame came from and went to; 0 = none or several */
	u16 out;
	u16 tcp_flags;
	u8 tos; /* that of the first packet */
	u8 min_ttl;
	u8 max_ttl;
	u8 reserved[7];
};

/* A fast slot for one flow of a round. Nothing clears it: it becomes free with the next round. A frame of a flow writes
 * only the first of its two cache lines. The description of the tables records only its size: a change that keeps the
 * size must also change the layout of flow_places. */
struct flow_place {
	u64 tag; /* round << 1 | 1 if the key is wide */
	struct flow flow;
	u64 patience; /* how many more frames of other flows may find the slot taken before it changes hands */
	struct wide_flow_key key; /* for an IPv4 flow a struct flow_key */
	u64 reserved;
};

enum place_words {
	PLACE_WORDS = sizeof(struct flow_place) / 8,
};

/* Fast slots are taken one after the other. A cell of 32 bits says which flow has one: a 1 and the last 11 bits of the
 * round, 5 bits of the key's hash, and the slot's number. A cell of another round is free. One from exactly 2,048
 * rounds ago looks as if it were taken: that does no harm, because slot and key decide. */
struct flow_places {
	u64 used; /* lower half of the round << 32 | slots taken in it */
	u64 reserved[7];
	u64 words[FLOW_PLACES / 2 + FLOW_PLACES * PLACE_WORDS]; /* place_cells cells, and as many fast slots */
};

struct meter_control {
	u64 round; /* the set that is written is round & 1 */
	u64 drained; /* the last round that was drained; only the agent writes it */
	/* How flows begin in the fast slots of a set, enum place_limits. The agent closes them before it gives way to
	 * one that may not look there, and shifts while a set is not written, so that few flows use few lines of
	 * memory. This is here because every frame reads this line and none writes it; programs of another version,
	 * whose slots may look different, read it too. */
	u64 places[2];
	u64 reserved[4];
};

/* Counts of a point. Per CPU, never reset. */
struct meter_point {
	u64 observed
		[2]; /* packets by direction, metered or skipped by sampling; not counted while every packet is metered */
	u64 lost_packets; /* their flow did not fit */
	u64 lost_bytes;
	u64 lost_frame_bytes;
	u64 lost_flows;
	u32 skip[2]; /* packets until the next metered one, by direction */
	u64 room; /* lower half of the round << 32 | flows of the port that this CPU has reserved and not begun */
};

/* The quota for flows of one port's frames, wherever they are observed, or one that the ports of a switch share. */
struct flow_room {
	u64 taken; /* lower half of the round << 32 | flows that CPUs have reserved */
	u32 limit;
	u32 pool; /* index of the quota to use when this one is used up, 0 = none */
	u64 reserved[6]; /* so that each has its own cache line */
};

/* What a frame adds to a flow. */
struct meter_amount {
	u64 packets;
	u64 bytes;
	u64 frame_bytes;
	u32 now;
	u32 in_out;
};

/* The path of a frame in one number: where it came in, where it goes out, its segment, and whose quota its flow
 * takes. */
enum meter_way {
	WAY_OUT_SHIFT = 16,
	WAY_VLAN_SHIFT = 32,
	WAY_ORIGIN_SHIFT = 48,
};

/* What to meter of the frame that was read. */
struct meter_ask {
	u64 what; /* enum meter_what */
	u64 way; /* enum meter_way */
	u64 now;
	u64 round;
	u64 places; /* for its set, as in struct meter_control */
};

/* The cell that a flow may take, after a look-up. */
struct meter_cell {
	u32 at; /* index of the first free cell of its bucket, if there is one */
	u32 none; /* no cell or no slot is free */
	u32 mark; /* the new content of the cell, without the slot's number */
	u32 reserved;
};

/* What is read of a frame, once for all points. */
struct meter_taken {
	struct flow_key key;
	struct wide_flow_key wide_key;
	u32 wide; /* the key is the wide one */
	u32 packets; /* number of packets that the frame stands for */
	/* bytes of layer 3, and of the frame without its tag: of each packet but the last, then of the last */
	u32 bytes;
	u32 last_bytes;
	u32 frame_bytes;
	u32 last_frame_bytes;
	u16 tcp_flags;
	u8 tos;
	u8 ttl;
	u32 reserved;
};

/* Scratch memory of this CPU for a frame: the stack is too small. */
struct meter_scratch {
	struct meter_taken taken;
	struct flow fresh;
	struct meter_amount amount;
	struct meter_ask ask;
	struct meter_cell cell;
	u64 full[2]; /* the round in which this CPU's table was full: of IPv4, of other flows */
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
	MAP_TYPE(value, struct flow_places[1]); /* the compiler does not describe a type that is only pointed to */
};
struct shared_flow_table {
	MAP_UINT(type, MAP_HASH);
	MAP_UINT(max_entries, 1);
	MAP_UINT(map_flags, MAP_NO_PREALLOC);
	MAP_TYPE(key, struct wide_flow_key);
	MAP_TYPE(value, struct flow);
};

/* Each CPU's tables; those of the second set follow those of the first: twice meter_cpus of them. */
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
