/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Reports of the program to the agent, for "heddle events". Nothing depends on them: without an agent the ring fills up
 * and further reports are only counted (untold). Each port has a rate limiter, so that a hostile port cannot drown the
 * reports of others. */
#pragma once
#include "core/frame.h"

enum tell_limits {
	TELL_RING_BYTES = 1 << 18,
	TELLS_PER_SECOND = 32, /* of one port */
};

enum tell_kind {
	TELL_LEARNED = 1,
	TELL_MOVED = 2, /* other: the slot that had it */
	/* these at most once a second and port */
	TELL_LIMIT = 3, /* the port learns no more; other: the reason */
	/* other: the reason, one that shows a guest's intent; for the guards' reasons it is a struct told_claim
	 * (stage/guard.h) */
	TELL_REFUSED = 4,
	/* from stage/loop.h, with limits of their own */
	TELL_PROBE = 5, /* a struct told_probe; segment: the tag it came with */
	TELL_SIGN = 6, /* a sign of a loop; other: enum loop_sign, and from bit 8 on how many frames */
	/* once for each wait that the agent begins */
	TELL_AWAKE = 7, /* other: the number of the wait that is over */
	/* at most once a second and port, as the ones before */
	TELL_OUTSIDE = 8, /* the port's own MAC speaks outside, and it is no echo; other: the slot of the uplink */
};

struct tell {
	u64 at; /* ns of the monotonic clock */
	u32 kind; /* enum tell_kind */
	u32 slot;
	u32 other;
	u32 segment;
	u8 mac[6];
	u16 reserved;
	u32 untold; /* reports of this slot that were left out since the last one */
	u32 reserved2;
};

struct told {
	u64 since; /* ticks; the second that is being counted */
	u64 limit_at; /* ticks + 1; 0 = never */
	u64 refused_at;
	u32 count;
	u32 untold;
	/* of stage/loop.h */
	u64 owned_at; /* ticks + 1; 0 = never */
	u64 moved_at;
	u64 loop_since; /* ticks; the second in which floods and probes are counted */
	u32 floods;
	u32 probes;
	u64 outside_at; /* ticks + 1; 0 = never */
};

struct {
	MAP_UINT(type, MAP_RINGBUF);
	MAP_UINT(max_entries, TELL_RING_BYTES);
} tells SEC(".maps");

struct {
	MAP_UINT(type, MAP_ARRAY);
	MAP_UINT(max_entries, MAX_PORTS);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct told);
} told SEC(".maps");

/* When that was told last, of what is told once a second. Each kind has its own: none hides another. */
INLINE u64 *last_told(struct told *t, u32 kind)
{
	if (kind == TELL_LIMIT)
		return &t->limit_at;
	return kind == TELL_OUTSIDE ? &t->outside_at : &t->refused_at;
}

INLINE bool may_tell(struct told *t, u32 kind, u64 now)
{
	u64 *last = last_told(t, kind);

	if (kind == TELL_AWAKE)
		return true;
	if (kind >= TELL_LIMIT) {
		if (*last && now + 1 - *last < ticks_per_second)
			return false;
		*last = now + 1;
		return true;
	}
	if (now - t->since >= ticks_per_second) {
		t->since = now;
		t->count = 0;
	}
	if (t->count >= TELLS_PER_SECOND) {
		t->untold++;
		return false;
	}
	t->count++;
	return true;
}

/* Adds which CPU reports it, and when. */
INLINE void sign_tell(struct tell *e, const struct told *t, u64 mac)
{
	e->at = bpf_ktime_get_ns();
	e->untold = t->untold;
	*(u32 *)e->mac = (u32)mac;
	*(u16 *)(e->mac + 4) = (u16)(mac >> 32);
}

/* Takes numbers instead of the frame, so that the frame's record can stay in registers. mac: its six bytes, the first
 * in the lowest bits. */
NOINLINE u32 tell(u32 slot, u32 kind, u32 other, u32 segment, u64 mac)
{
	struct tell e = { .kind = kind, .slot = slot, .other = other, .segment = segment };
	struct told *t;

	if (recording)
		return 0;
	t = bpf_map_lookup_elem(&told, &slot);
	if (!t || !may_tell(t, kind, bpf_jiffies64()))
		return 0;
	sign_tell(&e, t, mac);
	if (bpf_ringbuf_output(&tells, &e, sizeof(e), 0))
		t->untold++;
	else
		t->untold = 0;
	return 0;
}

INLINE u64 mac_number(const u8 *mac)
{
	return *(u32 *)mac | (u64) * (u16 *)(mac + 4) << 32;
}
