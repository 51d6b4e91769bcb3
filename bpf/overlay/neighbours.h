/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The tables of bindings (frame-rules §10, S85): which MAC has an IP address in an overlay segment. */
#pragma once
#include "overlay/count.h"
#include "core/arp.h"
#include "core/packet.h"

enum neighbour_limits {
	MAX_BINDINGS = 65536, /* heard by the programs; the one that was not used for longest gives way */
	MAX_TOLD_BINDINGS = 262144, /* told by controllers */
	MAX_SPEAKERS = 16384,
	ANSWERS_PER_SECOND = 200, /* to one MAC; as many at once */
	BINDINGS_PER_SECOND = 64, /* new ones of one MAC; as many at once */
	SURE_PER_SECOND = 8, /* of these, as many count without a question */
	DEFENCE_TIME = 2, /* seconds within which an owner speaks up against another one, or answers a question */
	EIGHTHS = 8, /* of a second, in which it is said when a question was asked */
	ASKED_AGAIN_LEAST = 4, /* eighths of a second from an answer to the same question, if it did not help */
	ASKED_AGAIN_MOST = 60 * EIGHTHS,
};

/* What is counted beside the reasons: no frame is dropped for these. */
enum neighbour_count {
	NEIGHBOUR_SPOOFED, /* the sender in ARP or ND is not the sender of the frame: nothing was bound */
	NEIGHBOUR_UNBOUND, /* a MAC had more new addresses than BINDINGS_PER_SECOND: nothing was bound */
	NEIGHBOUR_CONTESTED, /* another MAC claimed an address whose owner still speaks */
	NEIGHBOUR_KINDS,
};

enum binding_flag {
	BINDING_HERE = 1 << 0, /* the owner is behind a port of this host */
	BINDING_ADVERTISED = 1 << 1, /* IPv6: the owner itself has said whether it is a router */
	BINDING_ROUTER = 1 << 2,
	BINDING_UNVERIFIED = 1 << 3, /* the owner has taken the address over, and no question was answered since */
	BINDING_ASKED = 1 << 4, /* a question of this host's guests has passed since, when asked says */
	BINDING_UNHEARD = 1 << 5, /* the silence of others proves nothing: this tunnel would not hear their answer */
	BINDING_PROBED = 1 << 6, /* a probe was that question: only who has the address is asked by it */
	BINDING_UNANNOUNCED = 1 << 7, /* the owner here has sent nothing to all since the address is its own */
	BINDING_DOUBTS = BINDING_UNVERIFIED | BINDING_ASKED | BINDING_UNHEARD | BINDING_PROBED,
};

struct binding_key {
	u32 segment; /* slot of the tunnel << 16 | number */
	be32 address[4]; /* IPv4 in the last, after ::ffff: */
};

struct binding {
	u64 seen; /* ticks: when the owner was heard last */
	u64 changed; /* when the address went from the rival to the owner; 0 = it had no other owner */
	u64 contested; /* until when nobody is believed; 0 = the owner is */
	u8 mac[6];
	u8 flags; /* enum binding_flag */
	u8 turns; /* how often the address has come back from the rival */
	u8 rival[6]; /* who had the address before */
	u16 asked; /* eighths of a second, of the last question that passed while the owner was unverified */
};

/* What a controller has said; the programs only read it. */
struct told_binding {
	u64 seen; /* ticks: when the owner's host had heard it last */
	u8 mac[6];
	u8 flags; /* enum binding_flag */
	u8 reserved;
};

/* A MAC that asks, or has new addresses: what it has used up of its share since when, and what it was last answered. */
struct neighbour_speaker {
	u64 since; /* ticks */
	u16 answers;
	u16 answer; /* a hash of the address and of the MAC that it was told, 0 = none */
	u16 bindings;
	u16 answered; /* when, or when it last asked again since, in eighths of a second */
};

struct neighbour_counts {
	u64 n[8]; /* by enum neighbour_count */
};

#define NEIGHBOUR_TABLE(table, t, k, v, n, flags) \
	struct { \
		MAP_UINT(type, t); \
		MAP_UINT(max_entries, n); \
		MAP_UINT(map_flags, flags); \
		MAP_TYPE(key, k); \
		MAP_TYPE(value, v); \
	} table SEC(".maps")

NEIGHBOUR_TABLE(bindings, MAP_LRU_HASH, struct binding_key, struct binding, MAX_BINDINGS, 0);
NEIGHBOUR_TABLE(told_bindings, MAP_HASH, struct binding_key, struct told_binding, MAX_TOLD_BINDINGS, MAP_NO_PREALLOC);
NEIGHBOUR_TABLE(neighbour_speakers, MAP_LRU_HASH, struct location_key, struct neighbour_speaker, MAX_SPEAKERS, 0);
NEIGHBOUR_TABLE(neighbour_counts, MAP_HASH, u32, struct neighbour_counts, MAX_TUNNELS, MAP_NO_PREALLOC);

/* Those of a neighbour solicitation or advertisement with one option, the MAC (RFC 4861): both have one form. */
struct neighbour_nd {
	u8 version[4];
	be16 length;
	u8 protocol;
	u8 hops;
	be32 source[4];
	be32 destination[4];
	u8 type;
	u8 code;
	be16 checksum;
	u8 flags[4];
	be32 target[4];
	u8 option;
	u8 option_length;
	u8 mac[6];
};

/* What this CPU reads and writes of one packet. */
struct neighbour {
	struct binding_key owner, asked;
	struct location_key speaker;
	struct binding fresh;
	struct neighbour_speaker share;
	struct neighbour_counts none;
	u8 macs[12]; /* of the answer: destination, source */
	u8 found[6]; /* the MAC of the address that is asked for */
	u8 flags; /* enum binding_flag, of the same */
	u8 says; /* enum binding_flag, of the packet's sender */
	u32 slot;
	u32 hold; /* ticks */
	u64 now;
	u8 answers; /* the packet answers a question of one station */
	u8 group; /* the packet is for several stations */
	u8 announces; /* the first such packet since the address is its sender's */
	u8 reserved[3];
	union {
		struct arp arp;
		struct neighbour_nd nd;
	} __attribute__((aligned(8)));
};

struct {
	MAP_UINT(type, MAP_PERCPU_ARRAY);
	MAP_UINT(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct neighbour);
} neighbours SEC(".maps");

INLINE struct neighbour *neighbour_of_cpu(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&neighbours, &zero);
}

INLINE bool same_mac(const u8 *a, const u8 *b)
{
	return *(const u16 *)a == *(const u16 *)b && *(const u16 *)(a + 2) == *(const u16 *)(b + 2) &&
	       *(const u16 *)(a + 4) == *(const u16 *)(b + 4);
}

INLINE void count_neighbour(struct neighbour *k, enum neighbour_count what)
{
	struct neighbour_counts *n = bpf_map_lookup_elem(&neighbour_counts, &k->slot);

	if (!n) {
		__builtin_memset(&k->none, 0, sizeof(k->none));
		bpf_map_update_elem(&neighbour_counts, &k->slot, &k->none, UPDATE_NOEXIST);
		n = bpf_map_lookup_elem(&neighbour_counts, &k->slot);
	}
	if (n)
		__sync_fetch_and_add(&n->n[what], 1);
}

/* The share of the frame's sender; 0 if the table does not take it. It is renewed each second. */
INLINE struct neighbour_speaker *share_of(struct neighbour *k)
{
	struct neighbour_speaker *s = bpf_map_lookup_elem(&neighbour_speakers, &k->speaker);

	if (!s) {
		k->share.since = k->now;
		k->share.answers = k->share.answer = k->share.bindings = k->share.answered = 0;
		bpf_map_update_elem(&neighbour_speakers, &k->speaker, &k->share, UPDATE_ANY);
		return bpf_map_lookup_elem(&neighbour_speakers, &k->speaker);
	}
	if (k->now - s->since >= ticks_per_second) {
		s->since = k->now;
		s->answers = s->bindings = 0;
	}
	return s;
}
