/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Link control from the wire: it is the host's, and guests that may speak a protocol get a copy of the answers (S170). */
#pragma once
#include "stage/admit.h"
#include "stage/aside.h"
#include "stage/classify.h"
#include "stage/flood.h"

struct control_walk {
	struct frame *f;
	u32 chunk;
	u32 rule; /* what a port needs to get a copy */
};

static s64 control_one(u32 i, struct control_walk *w)
{
	struct frame *f = w->f;
	u32 at = w->chunk + i / CHUNK;
	struct member_chunk *c = bpf_map_lookup_elem(&members, &at);
	struct port *r;
	u32 slot;

	if (!c)
		return 1;
	slot = c->slot[i % CHUNK];
	r = port_at(f->facts->half, slot);
	if (r && !(r->flags & PORT_UPLINK) && r->rules & w->rule)
		consider(f, slot);
	return 0;
}

INLINE void consider_speakers(struct frame *f, u32 rule)
{
	struct group *g = group_of(f);
	struct control_walk w = { .f = f, .rule = rule };

	if (!g || !g->all.count)
		return;
	w.chunk = f->facts->half * MAX_MEMBER_CHUNKS + g->all.chunk;
	bpf_loop(g->all.count, control_one, &w, 0);
	if (f->facts->pending)
		hand_over_pending(f, false);
}

/* The host's listeners get a frame that only the host receives, and know whether it had a tag. */
INLINE s32 control_to_host(struct frame *f)
{
	mark_tagged(f);
	return to_host(f);
}

/* The frame itself goes to the host's stack, copies to the ports of its segment whose lists have its protocol. */
NOINLINE s32 pass_control(struct frame *f)
{
	u32 rule = is_spanning_tree(f->facts->dst) ? RULE_PASS_BPDU : link_control_rule(f);
	bool open = !(f->in->flags & PORT_BLOCKED) && f->facts->l3_length <= f->in->switch_mtu;

	if (rule && open && !classify(f)) {
		if (UNLIKELY(f->in->flags & SWITCH_METERS))
			meter_read(f);
		consider_speakers(f, rule);
	}
	return control_to_host(f);
}

INLINE s32 pass_control_aside(struct frame *f)
{
	struct aside *a = aside_begin();
	struct frame there;

	if (!a)
		return control_to_host(f);
	there = aside_of(f, a);
	return aside_end(a, pass_control(&there));
}
