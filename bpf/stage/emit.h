/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The only code that hands a copy to a device (frame-rules §6): it tags, delivers, counts and meters the copy. */
#pragma once
#include "meter/meter.h"
#include "stage/aside.h"
#include "stage/receive.h"

INLINE void tag_for(struct frame *f, const struct port *r, struct tag *want)
{
	u32 vid = f->facts->segment & VID_MASK;

	*want = f->facts->came; /* the untagged segment: as it came */
	if (!vid)
		return;
	want->protocol = 0;
	if (r->vlan_mode != VLAN_TRUNK)
		return;
	want->protocol = f->facts->segment & SEGMENT_AD ? TYPE_VLAN_AD : TYPE_VLAN;
	want->tci = (f->facts->came.protocol ? f->facts->came.tci & TCI_PRIORITY : 0) | vid;
}

/* Makes the frame carry exactly this outermost tag. Returns 0 or an error. */
INLINE s64 set_tag(struct frame *f, const struct tag *want)
{
	if (f->facts->now_on.protocol == want->protocol && (!want->protocol || f->facts->now_on.tci == want->tci))
		return 0;
	if (f->facts->now_on.protocol) {
		s64 err = bpf_skb_vlan_pop(f->skb);

		if (err)
			return err;
		f->facts->now_on.protocol = 0;
	}
	if (want->protocol) {
		s64 err = bpf_skb_vlan_push(f->skb, HTONS(want->protocol), want->tci);

		if (err)
			return err;
		f->facts->now_on = *want;
	}
	return 0;
}

INLINE void count_out(struct frame *f, u32 slot, const struct port *r, u32 bytes)
{
	struct counters *c = counters_of(slot);
	u32 class = f->facts->class;

	if (!c || class >= CLASSES)
		return;
	c->packets_out[class]++;
	c->bytes_out[class] += bytes;
	if (f->facts->from_host)
		return;
	if (f->in->flags & PORT_UPLINK)
		c->bytes_in_from_pnic += bytes;
	else if (r->flags & PORT_UPLINK)
		f->count->bytes_out_to_pnic += bytes;
}

INLINE void count_to_host(u32 slot)
{
	struct counters *c = counters_of(slot);

	if (c)
		c->packets_to_host++;
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

/* Counts a dropped frame of the slot, or a refused copy for it, for a reason from REASONS_PER_CPU on. */
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
		set_tag(f, &f->facts->came);
		capture_refusal(f, slot, why);
	}
	if (!f->facts->lowest_refusal || why < f->facts->lowest_refusal)
		f->facts->lowest_refusal = why;
	if (!slot)
		return;
	if (is_rare(why))
		count_rare(slot, why, true);
	else if (c)
		c->refused[why]++;
}

/* A peer redirect marks the frame as addressed to the guest itself: it is only used when that is true (D4, S95). The
 * kernel does not offer it for outgoing frames. */
INLINE s32 send(struct frame *f, u32 slot, const struct port *r)
{
	if (slot == f->facts->known && r->flags & PORT_PEER_REDIRECT && !f->facts->from_host)
		return bpf_redirect_peer(r->ifindex, 0);
	return bpf_redirect(r->ifindex, 0);
}

/* One copy of a frame, on its way to one receiver. */
struct copy {
	u32 slot;
	const struct port *to;
	struct tag tag; /* the tag of the copy at the receiver */
	bool host; /* it is for the host's own stack behind the uplink */
	bool last; /* the frame itself is sent, and the verdict is returned; else a clone */
	bool only; /* there is no other receiver */
	bool read; /* the frame has been read for metering */
	s32 verdict;
};

INLINE bool is_metered(const struct frame *f, const struct copy *c)
{
	return UNLIKELY((f->in->flags & PORT_METER_INGRESS) | (c->to->flags & PORT_METER_EGRESS));
}

/* Gives the frame the copy's tag. false = it cannot. */
INLINE bool tag_copy(struct frame *f, struct copy *c)
{
	if (c->only && is_metered(f, c) && is_tag(f->facts->type)) {
		c->read = true;
		meter_read(f); /* popping the first tag may also move a second tag out of the bytes */
	}
	tag_for(f, c->to, &c->tag);
	return !set_tag(f, &c->tag);
}

/* Hands the copy to the host's own stack. It enters through the uplink's device, whose program recognizes it by its
 * mark. */
INLINE s64 deliver_to_host(struct frame *f, struct copy *c)
{
	u32 before = f->skb->mark;
	s64 err;

	f->skb->mark = MARK_TO_HOST;
	if (c->last) {
		c->verdict = bpf_redirect(c->to->ifindex, REDIRECT_INGRESS);
		return 0;
	}
	err = bpf_clone_redirect(f->skb, c->to->ifindex, REDIRECT_INGRESS);
	f->skb->mark = before;
	return err;
}

/* Hands the copy over. false = the device did not take it. */
INLINE bool deliver_copy(struct frame *f, struct copy *c)
{
	if (recording) {
		record_frame(f->skb, c->host ? RECORD_HOST : RECORD_COPY, c->slot);
		return true;
	}
	if (c->host)
		return !deliver_to_host(f, c);
	if (!c->last)
		return !send_clone(f, c->to->ifindex);
	c->verdict = send(f, c->slot, c->to);
	return true;
}

/* The copy has been handed over: counts it and shows it to captures. */
INLINE void account_copy(struct frame *f, const struct copy *c)
{
	f->facts->sole = c->host || f->facts->delivered ? 0 : c->slot;
	f->facts->delivered = 1;
	capture_deliver(f, c->slot, c->host ? CAPTURE_TO_HOST : 0);
	if (c->host)
		count_to_host(c->slot);
	else
		count_out(f, c->slot, c->to, f->facts->bare + (c->tag.protocol ? TAG : 0));
}

/* Copies for the host's own stack do not count as sent by the uplink. */
INLINE void meter_copy(struct frame *f, const struct copy *c)
{
	if (c->host)
		return;
	if (c->only && LIKELY(!c->read)) {
		if (is_metered(f, c))
			meter_unicast(f, c->slot, c->to, c->tag.protocol);
		return;
	}
	if (UNLIKELY(c->to->flags & PORT_METER_EGRESS))
		meter_out(f, c->slot, c->to, c->tag.protocol);
	if (c->only && f->in->flags & PORT_METER_INGRESS)
		meter_in(f);
}

INLINE s32 emit(struct frame *f, struct copy *c)
{
	if (!tag_copy(f, c) || !deliver_copy(f, c)) {
		count_refusal(f, c->slot, REASON_DEVICE_REFUSED);
		return VERDICT_DROP;
	}
	account_copy(f, c);
	meter_copy(f, c);
	return c->verdict;
}

INLINE s32 hand_over(struct frame *f, u32 slot, const struct port *r, bool last)
{
	struct copy c = { .slot = slot, .to = r, .last = last, .verdict = VERDICT_DROP };

	return emit(f, &c);
}

/* Hands the frame to its only receiver. */
INLINE s32 hand_over_only(struct frame *f, u32 slot, const struct port *r)
{
	struct copy c = { .slot = slot, .to = r, .last = true, .only = true, .verdict = VERDICT_DROP };

	return emit(f, &c);
}

/* Hands a copy of a port's frame to the host's own stack behind uplink u, tagged as on the uplink's wire. */
INLINE s32 hand_to_host(struct frame *f, u32 slot, const struct port *u, bool last)
{
	struct copy c = { .slot = slot, .to = u, .host = true, .last = last, .verdict = VERDICT_DROP };

	return emit(f, &c);
}

/* Passes a frame from the wire on to the host's stack: not a copy, but the frame as it arrived, on the device where it
 * arrived. */
INLINE s32 to_host(struct frame *f)
{
	set_tag(f, &f->facts->came);
	if (recording)
		record_frame(f->skb, RECORD_HOST, f->facts->slot);
	capture_deliver(f, f->facts->slot, CAPTURE_TO_HOST);
	f->count->packets_to_host++;
	f->facts->sole = 0;
	if (UNLIKELY(f->in->flags & PORT_METER_INGRESS)) {
		f->facts->segment = tagged_segment(f); /* a frame for the host alone may not have been classified */
		meter_read(f);
	}
	count_delivered(f);
	return VERDICT_NEXT;
}

/* Drops the frame, unless the host's own stack wants it (S96). */
INLINE s32 drop(struct frame *f, enum reason why)
{
	if (f->facts->to_host)
		return to_host(f);
	if (recording) {
		struct record_control *ctl = record_ctl();

		if (ctl)
			ctl->reason = why;
	}
	if (capturing) {
		set_tag(f, &f->facts->came);
		capture_drop(f, why);
	}
	if (is_rare(why))
		count_rare(f->facts->slot, why, false);
	else
		f->count->drops[why]++;
	return VERDICT_DROP;
}

/* Nobody got a copy. */
INLINE s32 undelivered(struct frame *f)
{
	if (f->facts->lowest_refusal)
		return drop(f, f->facts->lowest_refusal);
	return drop(f, f->facts->class == CLASS_UNICAST ? REASON_UNKNOWN_UNICAST : REASON_NO_RECEIVER);
}
