/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Removes a learned MAC: because it is too old, or because somebody asks for it. */
#pragma once
#include "core/macs.h"

/* Removes an entry, and keeps the count of its port right. A mark that it has outlives it. */
INLINE bool forget(const struct mac_key *k, const struct learned *e, u64 now)
{
	u64 sent = e->sent;
	u32 slot = e->slot;

	if (bpf_map_delete_elem(&macs, k))
		return false;
	hold(slot, -1);
	if (sent && recent(now, sent - 1))
		keep_mark(k, sent - 1);
	return true;
}

/* An entry to remove, as it was read: one that has moved to another port meanwhile stays. */
struct forgotten_mac {
	struct mac_key key;
	u32 slot;
	u32 removed; /* out: 1 if it was there */
};

INLINE void forget_mac(struct forgotten_mac *f, u64 now)
{
	struct mac_key k = f->key;
	struct learned *e = bpf_map_lookup_elem(&macs, &k);

	f->removed = e && e->slot == f->slot && forget(&k, e, now);
}
