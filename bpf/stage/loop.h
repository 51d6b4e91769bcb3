/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Loops through ports, outside of the switch. The program sees signs of a loop and reports them to the agent. The agent
 * sends probes out of the ports, and the program reports the probes that come back. Only flooded frames show signs,
 * because a loop multiplies no others. */
#pragma once
#include "stage/classify.h"
#include "core/events.h"

enum loop_limits {
	TYPE_PROBE = 0x88b5, /* for local experiments (IEEE 802); others may use it too */
	PROBE_MAGIC = 0x48644c70, /* "HdLp", what a probe begins with */
	PROBE_BYTES = 56,
	PROBES_PER_SECOND = 32, /* reports per port */
	FLOODS_TOLD = 1024, /* flooded frames of a port within a second that are a sign; twice as many are another */
};

enum loop_sign {
	SIGN_OWNED = 1, /* a flooded frame from the MAC of another port or uplink */
	SIGN_MOVED = 2, /* a learned MAC was at another port less than a second ago */
	SIGN_FLOODS = 3, /* very many flooded frames */
};

struct told_probe {
	struct tell tell;
	u8 probe[PROBE_BYTES];
};

INLINE void tell_sign(u32 slot, enum loop_sign sign, u32 times, u32 segment, u64 mac)
{
	struct tell e = { .at = bpf_ktime_get_ns(),
			  .kind = TELL_SIGN,
			  .slot = slot,
			  .other = sign | times << 8,
			  .segment = segment };

	*(u32 *)e.mac = (u32)mac;
	*(u16 *)(e.mac + 4) = (u16)(mac >> 32);
	bpf_ringbuf_output(&tells, &e, sizeof(e), 0); /* if the ring is full, the next sign comes soon */
}

/* At most once per second and port. */
NOINLINE u32 sign_of_loop(u32 slot, u32 sign, u32 segment, u64 mac)
{
	struct told *t = bpf_map_lookup_elem(&told, &slot);
	u64 now = bpf_jiffies64(), *last;

	if (recording || !t)
		return 0;
	last = sign == SIGN_OWNED ? &t->owned_at : &t->moved_at;
	if (*last && now + 1 - *last < ticks_per_second)
		return 0;
	*last = now + 1;
	tell_sign(slot, sign, 0, segment, mac);
	return 0;
}

/* The count need not be exact: CPUs that update it at the same time lose a few. */
INLINE void loop_second(struct told *t, u64 now)
{
	if (now - t->loop_since < ticks_per_second)
		return;
	t->loop_since = now;
	t->floods = 0;
	t->probes = 0;
}

/* Another frame of the port is about to be flooded. */
NOINLINE u32 count_flooded(u32 slot, u32 segment, u64 mac)
{
	struct told *t = bpf_map_lookup_elem(&told, &slot);
	u32 n;

	if (recording || !t)
		return 0;
	loop_second(t, bpf_jiffies64());
	n = ++t->floods;
	if (LIKELY(n < FLOODS_TOLD || n & (n - 1)))
		return 0;
	tell_sign(slot, SIGN_FLOODS, n, segment, mac);
	return 0;
}

/* Is this broadcast, which has the EtherType of probes, a probe? If so, it is reported to the agent. tag: its tag in
 * the form of a segment. */
NOINLINE u32 is_probe(struct __sk_buff *skb, u32 slot, u32 tag)
{
	struct told_probe e = { .tell = { .kind = TELL_PROBE, .slot = slot, .segment = tag } };
	struct told *t;

	if (bpf_skb_load_bytes(skb, ETH_HEADER, e.probe, PROBE_BYTES))
		return 0;
	if (*(u32 *)e.probe != __builtin_bswap32(PROBE_MAGIC))
		return 0;
	t = bpf_map_lookup_elem(&told, &slot);
	if (recording || !t)
		return 1;
	loop_second(t, bpf_jiffies64());
	if (t->probes >= PROBES_PER_SECOND)
		return 1;
	t->probes++;
	e.tell.at = bpf_ktime_get_ns();
	bpf_ringbuf_output(&tells, &e, sizeof(e), 0);
	return 1;
}

INLINE bool looks_for_loop(struct frame *f)
{
	if (LIKELY(f->facts->type != TYPE_PROBE) || f->facts->class != CLASS_BROADCAST)
		return false;
	return is_probe(f->skb, f->facts->slot, tagged_segment(f));
}
