/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The request of a capture, and the records that it gets. */
#pragma once
#include "core/tables.h"

enum capture_limits {
	MAX_CAPTURES = 8, /* at a time */
	MAX_FILTER = 1024, /* instructions */
	MAX_SNAP = 65792, /* bytes: the longest frame with segmentation offload, and tags */
	FILTER_MEMORY = 16,
	CAPTURE_WAKE_NS = 1000000,
	CAPTURE_REASONS = 128, /* numbers of reasons that a capture can select */
	FILTER_HEAD = 128, /* bytes of a frame that are copied for a filter */
	CAPTURE_SEGMENTS = 8192, /* overlay segments of all switches */
};

enum capture_stage { CAPTURE_ADMIT = 1, CAPTURE_DELIVER = 2, CAPTURE_DROP = 3 };

enum capture_flag {
	/* flags of a record */
	CAPTURE_COPY = 1 << 0, /* about a copy for slot; otherwise about the frame that slot sent */
	CAPTURE_TO_HOST = 1 << 1, /* the copy is for the host's stack behind the uplink at slot */
	CAPTURE_FROM_HOST = 1 << 2, /* the host's own frame, leaving by the uplink at which it entered */
	CAPTURE_MADE = 1 << 3, /* the tunnel's program made the frame: the answer to a frame that left */
	/* flags of a capture */
	CAPTURE_ALL_PORTS = 1 << 8,
	CAPTURE_ALL_SEGMENTS = 1 << 9,
};

/* What a tunnel's frame had around it, or gets. Addresses are 16 bytes as on the wire, IPv4 behind ::ffff:; all zero = not
 * known, or none. */
struct capture_outer {
	be32 remote[4]; /* another host's endpoint */
	be32 local[4];
	u32 vni; /* 0 = none */
	u32 reserved;
};

struct capture_record {
	u64 at; /* ns of the monotonic clock */
	u32 segment; /* 0 = not known */
	u16 slot; /* the port that the record is about */
	u16 other; /* for a copy: the port that sent it */
	u32 length; /* bytes of the frame with its outermost tag */
	u32 captured; /* bytes that follow */
	u32 gso_size; /* payload of each frame this one stands for; 0 = one frame */
	u8 stage; /* enum capture_stage */
	u8 reason; /* enum reason of a drop */
	u8 flags; /* enum capture_flag */
	u8 reserved;
	struct capture_outer outer; /* of a frame at a tunnel */
};

/* One instruction of classic BPF (struct sock_filter). */
struct filter_instruction {
	u16 code;
	u8 jump_true;
	u8 jump_false;
	u32 k;
};

/* One capture. Written before its bit in capture_control is set; ports and segments also later, word by word. */
struct capture {
	u32 stages; /* bits, by enum capture_stage */
	u32 flags; /* enum capture_flag */
	u32 snap; /* bytes of a frame that the reader wants at most */
	u32 wake_at; /* bytes in the ring that wake the reader */
	u32 switch_number; /* switch id + 1 of the segments */
	u32 filter_length; /* instructions; 0 = everything */
	u32 overlay_number; /* switch_number's counterpart for its overlay segments */
	u32 reserved;
	u64 reasons[CAPTURE_REASONS / 64]; /* bits, by enum reason, for drops */
	u64 ports[MAX_PORTS / 64]; /* slots */
	u64 segments[SEGMENTS_PER_SWITCH / 64];
	u64 overlay_segments[SEGMENTS_PER_SWITCH / 64]; /* by number */
	struct filter_instruction filter[MAX_FILTER];
};

_Static_assert(REASONS_PER_CPU + REASONS_RARE <= CAPTURE_REASONS, "a capture can select every reason");

struct capture_control {
	u32 active; /* bits, by capture */
	u32 reserved;
};

struct capture_counts {
	u64 selected; /* frames and copies that matched */
	u64 lost; /* of these, those that did not fit into the ring */
	u64 woken; /* ns, when this CPU last woke the reader */
};

/* Working memory of one CPU. */
struct capture_scratch {
	struct capture_record record; /* the record and the frame go to the ring together */
	u8 frame[MAX_SNAP];
	/* Registers of the filter. They are in a table because the verifier takes a value from a table for any value:
	 * it then checks one step, not one per value. */
	u32 pc;
	u32 a;
	u32 x;
	u32 accepted;
	u32 memory[FILTER_MEMORY];
	/* The outermost tag with which the frame is shown: protocol << 16 | TCI, 0 = none. */
	u32 tag;
	u32 reserved;
};
