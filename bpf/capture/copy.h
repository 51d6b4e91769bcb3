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

/* The VLANs inside their VNIs of overlay segments, which the programs know by a number (overlay/tables.h). */
struct {
	MAP_UINT(type, MAP_HASH);
	MAP_UINT(max_entries, CAPTURE_SEGMENTS);
	MAP_UINT(map_flags, MAP_NO_PREALLOC);
	MAP_TYPE(key, u32); /* the segment, as in struct capture_record */
	MAP_TYPE(value, u32); /* 0 = untagged */
} capture_segments SEC(".maps");

INLINE bool has_bit(const u64 *bits, u32 i)
{
	return bits[(i / 64) & (SEGMENTS_PER_SWITCH / 64 - 1)] >> (i % 64) & 1;
}

INLINE bool selects(struct capture *c, const struct capture_record *h)
{
	u32 slot = h->slot, in_switch = h->segment & (SEGMENTS_PER_SWITCH - 1), of = h->segment >> SEGMENT_SWITCH_SHIFT;

	if (!(c->stages >> (h->stage & 31) & 1))
		return false;
	if (h->stage == CAPTURE_DROP && !(c->reasons[h->reason / 64 & 1] >> (h->reason % 64) & 1))
		return false;
	if (!(c->flags & CAPTURE_ALL_PORTS) && !(c->ports[(slot / 64) & 31] >> (slot % 64) & 1))
		return false;
	if (c->flags & CAPTURE_ALL_SEGMENTS)
		return true;
	if (!of)
		return false;
	return (of == c->switch_number && has_bit(c->segments, in_switch)) ||
	       (of == c->overlay_number && has_bit(c->overlay_segments, in_switch));
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
	s->record.length = skb->len + (s->tag ? TAG : 0);
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

/* The tag with which a frame is shown. The tag beside it may be the number of its overlay segment: it is shown with that
 * which it has inside the VNI. */
INLINE u32 shown_tag(struct __sk_buff *skb, bool numbered, u32 vlan)
{
	u32 tci = skb->vlan_tci & 0xffff;

	if (!skb->vlan_present)
		return 0;
	if (!numbered)
		return (u32)NTOHS(skb->vlan_proto) << 16 | tci;
	return vlan ? (u32)TYPE_VLAN << 16 | (tci & TCI_PRIORITY) | vlan : 0;
}

INLINE u64 capture_what(u32 stage, u32 slot, u32 other, u32 reason, u32 flags)
{
	return (slot & 0xffff) | (u64)(other & 0xffff) << 16 | (u64)stage << 32 | (u64)reason << 40 | (u64)flags << 48;
}

/* For all captures; the scratch says how the frame is shown. */
INLINE s32 capture_for_all(struct __sk_buff *skb, u64 what, u32 segment)
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
