/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The recording build: the same program with `recording` set at load time. It reads the arrival port and the clock from
 * record_control. Instead of sending, it writes every copy, refusal and the disposition into a memory-mapped table. */
#pragma once
#include "core/tables.h"

volatile const bool recording = false;

enum record_kind { RECORD_COPY = 1, RECORD_HOST = 2, RECORD_REFUSAL = 3 };

struct record_control {
	u64 now; /* in: ticks */
	u32 slot; /* in: arrival port */
	u32 grow; /* in: length to grow the frame to with zeros, 0 = leave */
	u32 count; /* out: records written; if above MAX_RECORDS, some are missing */
	u32 reason; /* out: enum reason, REASON_NONE = delivered */
	u64 reserved[5];
};

struct record {
	u32 kind; /* enum record_kind */
	u32 slot; /* receiver; for a copy to the host's stack the uplink; 0 for refusals without a receiver */
	u32 reason;
	u32 len;
	u8 frame[MAX_FRAME];
};

struct {
	MAP_UINT(type, MAP_ARRAY);
	MAP_UINT(max_entries, 1);
	MAP_UINT(map_flags, MAP_MMAPABLE);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct record_control);
} record_control SEC(".maps");

struct {
	MAP_UINT(type, MAP_ARRAY);
	MAP_UINT(max_entries, 1); /* MAX_RECORDS in the recording build */
	MAP_UINT(map_flags, MAP_MMAPABLE);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct record);
} records SEC(".maps");

INLINE struct record_control *record_ctl(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&record_control, &zero);
}

/* The control record of a run that begins. */
INLINE struct record_control *record_begin(struct __sk_buff *skb)
{
	struct record_control *ctl = record_ctl();

	if (!ctl)
		return 0;
	ctl->count = 0;
	ctl->reason = 0;
	if (ctl->grow && bpf_skb_change_tail(skb, ctl->grow, 0))
		return 0;
	return ctl;
}

INLINE struct record *record_new(u32 kind, u32 slot, u32 reason)
{
	struct record_control *ctl = record_ctl();
	struct record *r;
	u32 i;

	if (!ctl)
		return 0;
	i = ctl->count++;
	r = bpf_map_lookup_elem(&records, &i);
	if (!r)
		return 0;
	r->kind = kind;
	r->slot = slot;
	r->reason = reason;
	r->len = 0;
	return r;
}

INLINE void record_refusal(u32 slot, u32 reason)
{
	if (recording)
		record_new(RECORD_REFUSAL, slot, reason);
}

/* Copies the frame as a wire would carry it, with its outermost tag put back into the bytes. A function of its own, so
 * that its stack is not part of everybody's who hands frames over. */
NOINLINE u32 record_copy(struct __sk_buff *skb, u32 kind, u32 slot)
{
	struct record *r = record_new(kind, slot, REASON_NONE);
	u32 head = 12, rest = skb->len - 12;

	if (!r || bpf_skb_load_bytes(skb, 0, r->frame, 12))
		return 0;
	if (skb->vlan_present) {
		be16 tag[2] = { (be16)skb->vlan_proto, HTONS(skb->vlan_tci) };

		__builtin_memcpy(r->frame + 12, tag, 4);
		head = 16;
	}
	if (rest == 0 || rest > MAX_FRAME - 16)
		return 0;
	if (bpf_skb_load_bytes(skb, 12, r->frame + head, rest))
		return 0;
	r->len = head + rest;
	return 0;
}

INLINE void record_frame(struct __sk_buff *skb, u32 kind, u32 slot)
{
	if (recording)
		record_copy(skb, kind, slot);
}
