/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The tables of MACs as everything that keeps them right uses them: keys, ages, how many a port holds, marks, and who speaks for
 * whom. */
#pragma once
#include "core/segment.h"

enum speaker_bits { SPEAKER_SLOT_SHIFT = 48 };

/* Who sent last from a MAC that a port owns. */
struct speaker {
	u64 word; /* slot << SPEAKER_SLOT_SHIFT | MAC; 0 = the owner speaks for itself */
	u64 since; /* ticks; when this port began to speak */
};

INLINE bool of_mac(u64 word, u64 mac)
{
	return word << (64 - SPEAKER_SLOT_SHIFT) == mac << (64 - SPEAKER_SLOT_SHIFT);
}

/* Indexed by the slot of the MAC's owner. */
struct {
	MAP_UINT(type, MAP_ARRAY);
	MAP_UINT(max_entries, MAX_PORTS);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct speaker);
} speakers SEC(".maps");

INLINE void mac_key_of(struct mac_key *k, u32 segment, const u8 *mac)
{
	k->segment = segment;
	__builtin_memcpy(k->mac, mac, 6);
	k->reserved = 0;
}

/* Ticks from then to now. Another CPU may have read the clock after this frame did and stored a later time; then no
 * time has passed. */
INLINE u64 elapsed(u64 now, u64 then)
{
	return now > then ? now - then : 0;
}

INLINE bool recent(u64 now, u64 then)
{
	return elapsed(now, then) < ticks_per_second;
}

/* Counts that the port holds n more learned MACs. */
INLINE void hold(u32 slot, s64 n)
{
	u64 *count = bpf_map_lookup_elem(&held, &slot);

	if (count)
		__sync_fetch_and_add(count, n);
}

INLINE void mark(const struct mac_key *k, u64 at)
{
	bpf_map_update_elem(&marks, k, &at, UPDATE_ANY);
}

/* Keeps a mark that the port itself made; another port may have sent from the same source since then. */
INLINE void keep_mark(const struct mac_key *k, u64 at)
{
	u64 *newer = bpf_map_lookup_elem(&marks, k);

	if (!newer || *newer < at)
		mark(k, at);
}
