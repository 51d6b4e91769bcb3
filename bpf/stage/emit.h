/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The only place that hands a copy to a device (frame-rules §6). */
#pragma once
#include "meter/meter.h"
#include "stage/receive.h"

INLINE void tag_for(struct frame *f, const struct port *r, struct tag *want)
{
	u32 vid = f->segment & VID_MASK;

	*want = f->came; /* the untagged segment: as it came */
	if (!vid)
		return;
	want->protocol = 0;
	if (r->vlan_mode != VLAN_TRUNK)
		return;
	want->protocol = f->segment & SEGMENT_AD ? TYPE_VLAN_AD : TYPE_VLAN;
	want->tci = (f->came.protocol ? f->came.tci & TCI_PRIORITY : 0) | vid;
}

/* Makes the frame carry exactly this outermost tag. 0 or an error. */
INLINE s64 set_tag(struct frame *f, const struct tag *want)
{
	if (f->now_on.protocol == want->protocol && (!want->protocol || f->now_on.tci == want->tci))
		return 0;
	if (f->now_on.protocol) {
		s64 err = bpf_skb_vlan_pop(f->skb);

		if (err)
			return err;
		f->now_on.protocol = 0;
	}
	if (want->protocol) {
		s64 err = bpf_skb_vlan_push(f->skb, HTONS(want->protocol), want->tci);

		if (err)
			return err;
		f->now_on = *want;
	}
	return 0;
}

INLINE void count_out(struct frame *f, u32 slot, const struct port *r, u32 bytes)
{
	struct counters *c = counters_of(slot);
	u32 class = f->class;

	if (!c || class >= CLASSES)
		return;
	c->packets_out[class]++;
	c->bytes_out[class] += bytes;
	if (f->from_host)
		return;
	if (f->in->flags & PORT_UPLINK)
		c->bytes_in_from_pnic += bytes;
	else if (r->flags & PORT_UPLINK)
		f->count->bytes_out_to_pnic += bytes;
}

/* At least one copy was handed to a device. */
INLINE void count_delivered(struct frame *f)
{
	f->count->delivered++;
	if (UNLIKELY(f->in->flags & PORT_METER_INGRESS))
		meter_in(f);
}

INLINE bool is_rare(u32 why)
{
	return UNLIKELY(why >= REASONS_PER_CPU);
}

/* Counts a drop of a frame from the slot, or a refused copy for it, for a reason from REASONS_PER_CPU on. */
NOINLINE u32 count_rare(u32 slot, u32 why, bool refused)
{
	struct rare_counters *c = bpf_map_lookup_elem(&rare_counts, &slot);
	u32 i = why - REASONS_PER_CPU;

	if (!c || i >= REASONS_RARE)
		return 0;
	if (refused)
		__sync_fetch_and_add(&c->refused[i], 1);
	else
		__sync_fetch_and_add(&c->drops[i], 1);
	return 0;
}

INLINE void count_refusal(struct frame *f, u32 slot, enum reason why)
{
	struct counters *c = counters_of(slot);

	record_refusal(slot, why);
	if (capturing) {
		set_tag(f, &f->came);
		capture_refusal(f, slot, why);
	}
	if (!f->lowest_refusal || why < f->lowest_refusal)
		f->lowest_refusal = why;
	if (!slot)
		return;
	if (is_rare(why))
		count_rare(slot, why, true);
	else if (c)
		c->refused[why]++;
}

/* A peer redirect marks the frame as for the guest itself: only right when it is (D4, S95). The kernel has none on the way out. */
INLINE s32 send(struct frame *f, u32 slot, const struct port *r)
{
	if (slot == f->known && r->flags & PORT_PEER_REDIRECT && !f->from_host)
		return bpf_redirect_peer(r->ifindex, 0);
	return bpf_redirect(r->ifindex, 0);
}

/* Hands the copy over. last: the frame itself goes, and the verdict is the answer; else a clone. only: there is no other receiver. */
INLINE s32 hand_over_to(struct frame *f, u32 slot, const struct port *r, bool last, bool only)
{
	s32 verdict = VERDICT_DROP;
	bool read = false;
	struct tag want;

	if (only && UNLIKELY((f->in->flags & PORT_METER_INGRESS) | (r->flags & PORT_METER_EGRESS)) && is_tag(f->type)) {
		read = true;
		meter_read(f); /* a second tag may come out of the bytes with the first */
	}
	tag_for(f, r, &want);
	if (set_tag(f, &want)) {
		count_refusal(f, slot, REASON_DEVICE_REFUSED);
		return VERDICT_DROP;
	}
	if (recording) {
		record_frame(f->skb, RECORD_COPY, slot);
	} else if (last) {
		verdict = send(f, slot, r);
	} else if (bpf_clone_redirect(f->skb, r->ifindex, 0)) {
		count_refusal(f, slot, REASON_DEVICE_REFUSED);
		return VERDICT_DROP;
	}
	f->sole = f->delivered ? 0 : slot;
	f->delivered = 1;
	capture_deliver(f, slot, 0);
	count_out(f, slot, r, f->bare + (want.protocol ? TAG : 0));
	if (only && LIKELY(!read)) {
		if (UNLIKELY((f->in->flags & PORT_METER_INGRESS) | (r->flags & PORT_METER_EGRESS)))
			meter_unicast(f, slot, r, want.protocol);
		return verdict;
	}
	if (UNLIKELY(r->flags & PORT_METER_EGRESS))
		meter_out(f, slot, r, want.protocol);
	if (only && f->in->flags & PORT_METER_INGRESS)
		meter_in(f);
	return verdict;
}

INLINE s32 hand_over(struct frame *f, u32 slot, const struct port *r, bool last)
{
	return hand_over_to(f, slot, r, last, false);
}

/* The frame has this receiver alone. */
INLINE s32 hand_over_only(struct frame *f, u32 slot, const struct port *r)
{
	return hand_over_to(f, slot, r, true, true);
}

/* A copy of a port's frame for the host's own stack behind uplink u, tagged as on its wire. It enters by the uplink's device, whose
 * program knows it by its mark. */
INLINE s32 hand_to_host(struct frame *f, u32 slot, const struct port *u, bool last)
{
	struct counters *c = counters_of(slot);
	s32 verdict = VERDICT_DROP;
	struct tag want;

	tag_for(f, u, &want);
	if (set_tag(f, &want)) {
		count_refusal(f, slot, REASON_DEVICE_REFUSED);
		return VERDICT_DROP;
	}
	if (recording) {
		record_frame(f->skb, RECORD_HOST, slot);
	} else {
		u32 before = f->skb->mark;
		s64 err = 0;

		f->skb->mark = MARK_TO_HOST;
		if (last) {
			verdict = bpf_redirect(u->ifindex, REDIRECT_INGRESS);
		} else {
			err = bpf_clone_redirect(f->skb, u->ifindex, REDIRECT_INGRESS);
			f->skb->mark = before;
		}
		if (err) {
			count_refusal(f, slot, REASON_DEVICE_REFUSED);
			return VERDICT_DROP;
		}
	}
	f->sole = 0;
	f->delivered = 1;
	capture_deliver(f, slot, CAPTURE_TO_HOST);
	if (c)
		c->packets_to_host++;
	return verdict;
}

/* A frame from the wire goes on to the host's stack. */
INLINE s32 to_host(struct frame *f)
{
	set_tag(f, &f->came); /* the stack sees it as it arrived */
	if (recording)
		record_frame(f->skb, RECORD_HOST, f->slot);
	capture_deliver(f, f->slot, CAPTURE_TO_HOST);
	f->count->packets_to_host++;
	f->sole = 0;
	if (UNLIKELY(f->in->flags & PORT_METER_INGRESS)) {
		f->segment = tagged_segment(f); /* what is for the host alone may not have been classified */
		meter_read(f);
	}
	count_delivered(f);
	return VERDICT_NEXT;
}

/* The frame goes no further, unless the host's own stack wants it (S96). */
INLINE s32 drop(struct frame *f, enum reason why)
{
	if (f->to_host)
		return to_host(f);
	if (recording) {
		struct record_control *ctl = record_ctl();

		if (ctl)
			ctl->reason = why;
	}
	if (capturing) {
		set_tag(f, &f->came);
		capture_drop(f, why);
	}
	if (is_rare(why))
		count_rare(f->slot, why, false);
	else
		f->count->drops[why]++;
	return VERDICT_DROP;
}

/* Nobody got a copy. */
INLINE s32 undelivered(struct frame *f)
{
	if (f->lowest_refusal)
		return drop(f, f->lowest_refusal);
	return drop(f, f->class == CLASS_UNICAST ? REASON_UNKNOWN_UNICAST : REASON_NO_RECEIVER);
}
