/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The life of a frame: one run takes it from the device it enters by to the devices it leaves by.
 *
 *   admit ─▶ classify ─▶ learn ─▶ look up ─▶ each receiver's rules ─▶ deliver
 *
 * docs/reference/frame-rules.md states every rule; internal/model is the same rules written a second time. */
#include "core/kernel.h"
#include "core/tables.h"
#include "core/record.h"
#include "core/bench.h"
#include "core/frame.h"
#include "stage/admit.h"
#include "stage/classify.h"
#include "stage/learn.h"
#include "stage/control.h"
#include "stage/lookup.h"
#include "stage/host.h"
#include "core/sweep.h"
#include "core/carry.h"
#ifdef TRIAL_STAGES
#include "trial_sender.h"
#endif

INLINE void count_in(struct frame *f)
{
	u32 class = f->facts->class;

	if (class >= CLASSES)
		return;
	f->count->packets_in[class]++;
	f->count->bytes_in[class] += frame_bytes(f);
}

INLINE s32 switch_frame(struct __sk_buff *skb, u32 slot)
{
	struct facts facts = { .slot = slot };
	struct frame f = { .skb = skb, .facts = &facts };
	struct control *c = plan_in_force();
	bool only_host = false;
	enum reason why;

	if (!c)
		return VERDICT_NEXT;
	facts.half = c->generation & 1; /* the only place that reads it: one run, one plan */
	facts.owner_seed = c->owner_seed[facts.half];
	f.in = port_at(facts.half, slot);
	if (!f.in || !(f.in->flags & PORT_CONNECTED))
		return VERDICT_NEXT; /* not ours at present */
	if (!recording && UNLIKELY(skb->mark == MARK_TO_HOST) && f.in->flags & PORT_UPLINK) {
		skb->mark = mark_of_copy(skb); /* it came from a port and was counted there */
		return VERDICT_NEXT;
	}
	f.count = counters_of(slot);
	if (!f.count)
		return VERDICT_NEXT;
	facts.now = clock();
	if (UNLIKELY(f.in->rules & RULE_WAITS))
		wake(slot, f.in->wait); /* S99 */
	if (UNLIKELY(!read_frame(&f))) {
		count_in(&f);
		capture_admit(&f, false);
		return drop(&f, REASON_MALFORMED);
	}
	count_in(&f);
	capture_admit(&f, true);

	if (f.in->flags & PORT_UPLINK)
		why = admit_uplink(&f, &only_host);
	else
		why = admit_port(&f);
	if (only_host) {
		if (UNLIKELY(f.in->flags & SWITCH_PASSES_CONTROL))
			return pass_control_aside(&f);
		return control_to_host(&f);
	}
	if (UNLIKELY(is_guard_reason(why)))
		tell_guarded(skb, slot, why, mac_number(facts.src));
	else if (why == REASON_FORGED_TRANSMIT || why == REASON_GUEST_BPDU || why == REASON_GUEST_LINK_CONTROL ||
		 why == REASON_GUEST_HEALTH_PROBE)
		tell(slot, TELL_REFUSED, why, 0, mac_number(facts.src));
	if (!why)
		why = classify(&f);
	if (why)
		return drop(&f, why);

	if (f.in->flags & PORT_UPLINK)
		learn_from_uplink(&f);
	else
		why = learn_from_port(&f);
#ifdef TRIAL_STAGES
	if (!why)
		why = trial_sender(&f);
#endif
	if (why)
		return drop(&f, why);

	return forward(&f);
}

SEC("tcx/ingress") s32 heddle_ingress(struct __sk_buff *skb)
{
	u32 slot = slot_of(skb->ifindex);

	return slot ? switch_frame(skb, slot) : VERDICT_NEXT;
}

/* What leaves by an uplink that carries the host's own traffic; attached to no other device. */
SEC("tcx/egress") s32 heddle_egress(struct __sk_buff *skb)
{
	u32 slot = slot_of(skb->ifindex);

	return slot ? host_frame(skb, slot) : VERDICT_NEXT;
}

/* The same two programs, on devices while a capture runs: if there is a stand-in, it takes over the frame. The kernel
 * empties these tables when the process that made them is gone; the device then pays only for this check. */
struct {
	MAP_UINT(type, MAP_PROG_ARRAY);
	MAP_UINT(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u32);
} ingress_stand_in SEC(".maps"), egress_stand_in SEC(".maps");

SEC("tcx/ingress") s32 heddle_ingress_or(struct __sk_buff *skb)
{
	u32 slot;

	bpf_tail_call(skb, &ingress_stand_in, 0);
	slot = slot_of(skb->ifindex);
	return slot ? switch_frame(skb, slot) : VERDICT_NEXT;
}

SEC("tcx/egress") s32 heddle_egress_or(struct __sk_buff *skb)
{
	u32 slot;

	bpf_tail_call(skb, &egress_stand_in, 0);
	slot = slot_of(skb->ifindex);
	return slot ? host_frame(skb, slot) : VERDICT_NEXT;
}

/* One frame of a dry run; see core/record.h. */
SEC("tcx/ingress") s32 heddle_record(struct __sk_buff *skb)
{
	struct record_control *ctl = record_begin(skb);

	if (!ctl)
		return VERDICT_DROP;
	return switch_frame(skb, ctl->slot);
}

/* The same for a frame of the host's own, about to leave by the uplink at the slot. */
SEC("tcx/egress") s32 heddle_record_egress(struct __sk_buff *skb)
{
	struct record_control *ctl = record_begin(skb);
	s32 verdict;

	if (!ctl)
		return VERDICT_DROP;
	verdict = host_frame(skb, ctl->slot);
	if (verdict == VERDICT_NEXT)
		record_frame(skb, RECORD_COPY, ctl->slot); /* it leaves */
	return verdict;
}

SEC("tcx/ingress") s32 heddle_bench(struct __sk_buff *skb)
{
	u32 slot = bench_next(skb);

	return slot ? switch_frame(skb, slot) : VERDICT_DROP;
}

struct sweep_result {
	u32 removed;
	u32 reserved;
};

SEC("syscall") s32 heddle_sweep(struct sweep_result *result)
{
	struct control *c = plan_in_force();
	struct sweep s = { .now = clock() };

	if (!c)
		return 1;
	s.half = c->generation & 1;
	bpf_for_each_map_elem(&macs, sweep_mac, &s, 0);
	bpf_for_each_map_elem(&own_marks, sweep_own_mark, &s, 0);
	bpf_for_each_map_elem(&speakers, sweep_speaker, &s, 0);
	result->removed = s.removed;
	return 0;
}

SEC("syscall") s32 heddle_forget(struct forgotten_mac *f)
{
	forget_mac(f, clock());
	return 0;
}

SEC("syscall") s32 heddle_carry(struct carried_mac *c)
{
	carry_mac(c);
	return 0;
}

/* Both clocks at one instant: the agent works out how many jiffies a second has. */
struct clocks {
	u64 ns;
	u64 ticks;
};

SEC("syscall") s32 heddle_clocks(struct clocks *c)
{
	c->ns = bpf_ktime_get_ns();
	c->ticks = bpf_jiffies64();
	return 0;
}

char _license[] SEC("license") = "Dual BSD/GPL";
