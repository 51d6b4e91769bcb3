/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Copies a learned MAC from tables of another layout, while programs may be learning into these: part of an upgrade. */
#pragma once
#include "core/macs.h"
#include "core/outside.h"

struct carried_mac {
	struct mac_key key;
	u32 reserved;
	struct learned entry;
};

/* A port of this host has the MAC: what frames of other hosts have shown of it counts no more. */
INLINE void forget_carried_outside(u32 slot, const struct mac_key *k)
{
	struct control *c = plan_in_force();
	struct port *p = c ? port_at(c->generation & 1, slot) : 0;

	if (p)
		forget_outside(p, k->segment, mac_number(k->mac));
}

/* The port from which the MAC was heard last gets it. Each port's count of MACs stays right. Limits are not checked:
 * the port was within its own. */
INLINE void carry_mac(const struct carried_mac *c)
{
	struct mac_key k = c->key;
	struct learned fresh = c->entry, *e = bpf_map_lookup_elem(&macs, &k);
	u32 had;

	if (!e) {
		hold(fresh.slot, 1);
		if (!bpf_map_update_elem(&macs, &k, &fresh, UPDATE_NOEXIST)) {
			forget_carried_outside(fresh.slot, &k);
			return;
		}
		hold(fresh.slot, -1);
		e = bpf_map_lookup_elem(&macs, &k);
		if (!e)
			return; /* the table is full */
	}
	if (e->seen >= fresh.seen)
		return;
	e->seen = fresh.seen;
	if (fresh.sent > e->sent)
		e->sent = fresh.sent;
	had = e->slot;
	if (had == fresh.slot || !__sync_bool_compare_and_swap(&e->slot, had, fresh.slot))
		return;
	hold(had, -1);
	hold(fresh.slot, 1);
}
