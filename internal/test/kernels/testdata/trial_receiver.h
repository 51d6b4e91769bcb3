/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Six stages that stand for stages to come, as large as those will be: each looks up two keys in hash tables, one also
 * walks over 160 words of rules, and one looks up the destination a second time. Only a test's build has them; see
 * stages_test.go. Each takes numbers, so that the frame's facts can stay in registers.
 *
 * Here are those of a receiver. */
#pragma once
#include "stage/receive.h"

enum { TRIAL_WORDS = 160, TRIAL_ENTRIES = 1024 };

struct trial_key {
	u32 set;
	be32 address[4];
	u32 port;
};

struct trial_words {
	u64 word[TRIAL_WORDS];
};

#define TRIAL_TABLE(name) \
	struct { \
		MAP_UINT(type, MAP_HASH); \
		MAP_UINT(max_entries, TRIAL_ENTRIES); \
		MAP_TYPE(key, struct trial_key); \
		MAP_TYPE(value, u32); \
	} name SEC(".maps")

TRIAL_TABLE(trial_sources);
TRIAL_TABLE(trial_destinations);

struct {
	MAP_UINT(type, MAP_ARRAY);
	MAP_UINT(max_entries, TRIAL_ENTRIES);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct trial_words);
} trial_rules SEC(".maps");

INLINE u32 trial_look_up(void *table, u32 set, const be32 *address, u32 words, u32 port)
{
	struct trial_key k = { .set = set, .port = port };
	u32 *found;

	for (u32 i = 0; i < 4 && i < words; i++)
		k.address[i] = address[i];
	found = bpf_map_lookup_elem(table, &k);
	return found ? *found : 0;
}

/* The packet must be known: both addresses of it, in the two tables. */
INLINE bool trial_both(u32 set, u32 *source, u32 *destination)
{
	struct packet *k = packet_of_cpu();
	u32 words;

	if (!k)
		return false;
	words = k->is & PACKET_IPV6 ? 4 : 1;
	*source = trial_look_up(&trial_sources, set, k->addresses, words, k->ports & 0xffff);
	*destination = trial_look_up(&trial_destinations, set, k->addresses + words, words, k->ports >> 16);
	return *source && *destination;
}

/* The first stage of a receiver: its rules, as sets of bits by source and by destination. */
SEPARATE u32 trial_filter(u32 receiver)
{
	struct trial_words *a, *b;
	u32 source, destination;

	if (!trial_both(receiver, &source, &destination))
		return REASON_NONE;
	a = bpf_map_lookup_elem(&trial_rules, &source);
	b = bpf_map_lookup_elem(&trial_rules, &destination);
	if (!a || !b)
		return REASON_NONE;
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < TRIAL_WORDS; i++)
		if (a->word[i] & b->word[i])
			return i & 1 ? REASON_RECEIVER_BLOCKED : REASON_NONE;
	return REASON_NONE;
}

/* The second: how much it may receive. */
SEPARATE u32 trial_shape(u32 receiver, u64 now)
{
	u32 source, destination;

	if (!trial_both(receiver | 1 << 16, &source, &destination))
		return REASON_NONE;
	return (u32)now - source < destination ? REASON_STORM_CONTROL : REASON_NONE;
}

/* The third: who else sees what it receives. */
SEPARATE u32 trial_mirror(struct __sk_buff *skb, u32 half, u32 receiver)
{
	struct port *p = port_at(half, receiver);
	u32 source, destination;

	if (!p || !trial_both(receiver | 1 << 17, &source, &destination))
		return 0;
	return bpf_clone_redirect(skb, p->ifindex, 0) ? REASON_DEVICE_REFUSED : REASON_NONE;
}

INLINE enum reason trial_receiver(struct frame *f, u32 slot)
{
	know_packet(f);
	if (UNLIKELY(trial_filter(slot)))
		return REASON_RECEIVER_BLOCKED;
	if (UNLIKELY(trial_shape(slot, f->facts->now)))
		return REASON_STORM_CONTROL;
	return UNLIKELY(trial_mirror(f->skb, f->facts->half, slot)) ? REASON_DEVICE_REFUSED : REASON_NONE;
}
