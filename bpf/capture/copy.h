/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The capturing build: copies frames, with what the switch does to them, into a ring of each capture that asked for
 * them. */
#pragma once
#include "capture/filter.h"

struct {
	MAP_UINT(type, MAP_ARRAY);
	MAP_UINT(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct capture_control);
} capture_control SEC(".maps");

struct {
	MAP_UINT(type, MAP_PERCPU_ARRAY);
	MAP_UINT(max_entries, MAX_CAPTURES);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct capture_counts);
} capture_counts SEC(".maps");

/* Each capture's own ring, so that a slow reader loses only its own frames. */
struct capture_ring {
	MAP_UINT(type, MAP_RINGBUF);
	MAP_UINT(max_entries, 1 << 12);
};
struct {
	MAP_UINT(type, MAP_ARRAY_OF_MAPS);
	MAP_UINT(max_entries, MAX_CAPTURES);
	MAP_TYPE(key, u32);
	struct capture_ring *values[];
} capture_rings SEC(".maps");

INLINE bool selects(struct capture *c, const struct capture_record *h)
{
	u32 slot = h->slot, in_switch = h->segment & (SEGMENTS_PER_SWITCH - 1);

	if (!(c->stages >> (h->stage & 31) & 1))
		return false;
	if (h->stage == CAPTURE_DROP && !(c->reasons[h->reason / 64 & 1] >> (h->reason % 64) & 1))
		return false;
	if (!(c->flags & CAPTURE_ALL_PORTS) && !(c->ports[(slot / 64) & 31] >> (slot % 64) & 1))
		return false;
	if (c->flags & CAPTURE_ALL_SEGMENTS)
		return true;
	return h->segment >> SEGMENT_SWITCH_SHIFT == c->switch_number &&
	       c->segments[(in_switch / 64) & 127] >> (in_switch % 64) & 1;
}

/* Handles one frame for one capture. A function of its own for the verifier, so that the switch's paths do not multiply
 * with those in here. */
SEPARATE s32 capture_one(struct __sk_buff *skb, u32 id, u64 what, u32 segment)
{
	struct capture *c = bpf_map_lookup_elem(&captures, &id);
	struct capture_counts *counted = bpf_map_lookup_elem(&capture_counts, &id);
	struct capture_scratch *s = capture_scratch_of_cpu();
	u64 wake = RINGBUF_NO_WAKE;
	void *ring;
	u32 size;

	if (!c || !counted || !s)
		return 0;
	s->record.slot = what;
	s->record.other = what >> 16;
	s->record.stage = what >> 32;
	s->record.reason = what >> 40;
	s->record.flags = what >> 48;
	s->record.segment = segment;
	s->record.length = skb->len + (skb->vlan_present ? TAG : 0);
	if (!selects(c, &s->record))
		return 0;
	if (c->filter_length && !filter_accepts(skb, c, s))
		return 0;
	counted->selected++;
	ring = bpf_map_lookup_elem(&capture_rings, &id);
	if (!ring || !copy_frame(skb, s, c->snap)) {
		counted->lost++;
		return 0;
	}
	s->record.at = bpf_ktime_get_ns();
	s->record.gso_size = skb->gso_size;
	size = s->record.captured;
	if (size > MAX_SNAP)
		size = MAX_SNAP;
	/* The reader polls often enough. It is woken when much waits for it, but not for each frame: a wake-up takes
	 * microseconds. */
	if (s->record.at - counted->woken > CAPTURE_WAKE_NS && bpf_ringbuf_query(ring, RINGBUF_UNREAD) > c->wake_at) {
		counted->woken = s->record.at;
		wake = RINGBUF_WAKE;
	}
	if (bpf_ringbuf_output(ring, s, sizeof(s->record) + size, wake))
		counted->lost++;
	return 0;
}

/* Takes numbers instead of the frame, so that the frame's record can stay in registers. */
SEPARATE s32 capture(struct __sk_buff *skb, u64 what, u32 segment)
{
	u32 zero = 0;
	struct capture_control *ctl = bpf_map_lookup_elem(&capture_control, &zero);
	u32 active;

	if (!ctl)
		return 0;
	active = ctl->active;
	for (u32 id = 0; id < MAX_CAPTURES; id++)
		if (active >> id & 1)
			capture_one(skb, id, what, segment);
	return 0;
}
