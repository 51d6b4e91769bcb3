/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Ports whose guest runs elsewhere: a migration is about to bring it, or has just taken it away (frame-rules, "Waiting
 * ports"). The agent numbers each wait, always higher than all before. The port's first frame ends the wait here,
 * without the agent's help, and a change of plan does not bring it back. */
#pragma once
#include "core/events.h"

/* By slot: the highest number of a wait that has ended. */
struct {
	MAP_UINT(type, MAP_ARRAY);
	MAP_UINT(max_entries, MAX_PORTS);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u64);
} awake SEC(".maps");

/* Called for ports with RULE_WAITS. */
NOINLINE u32 still_waits(u32 slot, u32 wait)
{
	u64 *over = bpf_map_lookup_elem(&awake, &slot);

	return over && *over < wait;
}

INLINE bool waits(u32 slot, const struct port *p)
{
	return UNLIKELY(p->rules & RULE_WAITS) && still_waits(slot, p->wait);
}

/* The port has sent a frame: its guest runs here. */
NOINLINE u32 wake(u32 slot, u32 wait)
{
	u64 *over = bpf_map_lookup_elem(&awake, &slot);

	if (!over || *over >= wait)
		return 0;
	*over = wait;
	tell(slot, TELL_AWAKE, wait, 0, 0);
	return 1;
}
