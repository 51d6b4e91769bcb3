/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Learning source MACs, remembering when each source last sent (frame-rules §3), and ownership of MACs. */
#pragma once
#include "core/forget.h"
#include "core/macs.h"
#include "stage/classify.h"
#include "stage/loop.h"
#include "core/outside.h"
#include "stage/sibling.h"

enum {
	ECHOES_IN_A_SECOND = 10, /* an echo comes back within this part of a second */
	TYPE_RARP = 0x8035,
};

/* Slot of the port (or uplink) whose own MAC this is, 0 = nobody's. If several ports have it, the one whose wait
 * began last. */
INLINE u32 owner_of(struct frame *f, const u8 *mac)
{
	u64 key = mac_number(mac) | (f->in->switch_id + 1ULL) << 48;
	u32 i = f->facts->half * OWNER_BUCKETS + (u32)(key * f->facts->owner_seed >> (64 - OWNER_BUCKET_BITS));
	struct owner_bucket *b = bpf_map_lookup_elem(&owners, &i);

	if (!b)
		return 0;
	if (b->key[0] == key)
		return b->slot[0];
	if (b->key[1] == key)
		return b->slot[1];
	if (b->key[2] == key)
		return b->slot[2];
	return b->key[3] == key ? b->slot[3] : 0;
}

/* Takes one entry of the port's quota; false = the port is at its limit. A flood from random sources only reads the
 * count. */
INLINE bool take_place(const struct port *p, u32 slot)
{
	u64 *count = bpf_map_lookup_elem(&held, &slot);

	if (!count || *(volatile u64 *)count >= p->learn_limit)
		return false;
	if (__sync_fetch_and_add(count, 1) < p->learn_limit)
		return true;
	__sync_fetch_and_add(count, -1);
	return false;
}

/* The port can learn no more: its own limit is reached, or the host's table is full. */
INLINE enum reason at_limit(const struct port *p, u32 slot, const struct mac_key *k, bool table_full)
{
	enum reason why = table_full || p->rules & RULE_SHARES_MACS ? REASON_MAC_TABLE_FULL : REASON_MAC_LIMIT;
	struct counters *count = counters_of(slot);

	tell(slot, TELL_LIMIT, why, k->segment, mac_number(k->mac));
	if (p->flags & PORT_LIMIT_DROPS)
		return why; /* S15 */
	if (count)
		count->mac_not_learned_allowed++; /* S16 */
	return REASON_NONE;
}

/* In what learn_new returns, beside a reason: the entry is the port's, and has the time of the frame. */
enum { LEARNED_HERE = 1 << 8 };

/* A learned MAC has moved to the port from another one. */
INLINE u32 learn_moved(u32 slot, const struct mac_key *k, struct learned *e, u64 now, u64 sent)
{
	struct counters *count = counters_of(slot);
	u32 had = e->slot;

	if (had == slot || !__sync_bool_compare_and_swap(&e->slot, had, slot)) {
		hold(slot, -1); /* another CPU was faster */
		return REASON_NONE;
	}
	hold(had, -1);
	if (recent(now, e->seen))
		sign_of_loop(slot, SIGN_MOVED, k->segment, mac_number(k->mac));
	e->seen = now; /* S20 */
	if (sent)
		e->sent = sent;
	if (count)
		count->mac_moves++;
	tell(slot, TELL_MOVED, had, k->segment, mac_number(k->mac));
	return LEARNED_HERE;
}

/* The port sent from a MAC that was not learned, or at another port. A function of its own for the verifier and the
 * stack: most frames come from a MAC that is known. */
SEPARATE u32 learn_new(u32 half, u32 slot, u32 segment, u64 mac, u64 now)
{
	struct learned fresh = { .seen = now, .slot = slot }, *e;
	struct mac_key k = { .segment = segment };
	struct port *p = port_at(half, slot);

	if (!p)
		return REASON_NONE;
	*(u32 *)k.mac = mac;
	*(u16 *)(k.mac + 4) = mac >> 32;
	if (p->flags & SWITCH_HAS_UPLINKS)
		fresh.sent = now + 1;
	if (!take_place(p, slot))
		return at_limit(p, slot, &k, false);
	forget_outside(p, segment, mac);
	e = bpf_map_lookup_elem(&macs, &k);
	if (e)
		return learn_moved(slot, &k, e, now, fresh.sent);
	if (bpf_map_update_elem(&macs, &k, &fresh, UPDATE_NOEXIST)) {
		hold(slot, -1);
		/* another CPU was faster, or the table is full */
		return bpf_map_lookup_elem(&macs, &k) ? REASON_NONE : at_limit(p, slot, &k, true);
	}
	tell(slot, TELL_LEARNED, 0, segment, mac);
	return LEARNED_HERE;
}

/* Learns that the port sent from this source now, and for a later check when (S91). */
INLINE u32 learn_source(struct frame *f, const struct mac_key *k)
{
	struct learned *e = bpf_map_lookup_elem(&macs, k);

	if (owner_of(f, f->facts->src))
		return REASON_NONE; /* S19 */
	if (UNLIKELY(!e || e->slot != f->facts->slot))
		return learn_new(f->facts->half, f->facts->slot, f->facts->segment, mac_number(f->facts->src),
				 f->facts->now);
	if (e->seen != f->facts->now)
		e->seen = f->facts->now;
	if (f->in->flags & SWITCH_HAS_UPLINKS)
		e->sent = f->facts->now + 1;
	return LEARNED_HERE;
}

/* Marks the port's own MAC as having sent now; an older mark of another segment or MAC moves to the common table. */
INLINE void mark_own(struct frame *f, const struct mac_key *k)
{
	struct own_mark *m = bpf_map_lookup_elem(&own_marks, &f->facts->slot);

	if (!m)
		return;
	if (UNLIKELY(m->key.segment != k->segment || !mac_equal(m->key.mac, k->mac))) {
		if (m->key.segment)
			keep_mark(&m->key, m->at);
		m->key = *k;
	}
	if (m->at != f->facts->now)
		m->at = f->facts->now;
}

INLINE enum reason learn_from_port(struct frame *f)
{
	bool own = mac_equal(f->facts->src, f->in->mac);
	struct mac_key k;
	u32 learned = 0;

	mac_key_of(&k, f->facts->segment, f->facts->src);
	if (UNLIKELY(f->in->rules & RULE_SIBLINGS))
		speak(f->facts->half, f->facts->slot, owner_of(f, f->facts->src) | (u64)f->facts->segment << 32,
		      mac_number(f->facts->src), f->facts->now);
	if (!own && f->in->flags & PORT_LEARNS)
		learned = learn_source(f, &k);
	if (learned || !(f->in->flags & SWITCH_HAS_UPLINKS))
		return learned & ~LEARNED_HERE;
	if (own)
		mark_own(f, &k);
	else
		mark(&k, f->facts->now);
	return REASON_NONE;
}

/* Did the port send from its own MAC in that segment within the last second? */
INLINE bool own_sent_recently(u32 slot, const struct mac_key *k, u64 now)
{
	struct own_mark *m = bpf_map_lookup_elem(&own_marks, &slot);

	return m && m->key.segment == k->segment && mac_equal(m->key.mac, k->mac) && recent(now, m->at);
}

/* Did one of the ports with that MAC send from it? */
INLINE bool owner_sent_recently(u32 half, u32 slot, const struct mac_key *k, u64 now)
{
	for (u32 i = 0; i < MAX_SAME_MAC && slot; i++) {
		struct port *p = port_at(half, slot);

		if (own_sent_recently(slot, k, now))
			return true;
		slot = p ? p->next_owner : 0;
	}
	return false;
}

/* Did one of our ports send (segment, MAC) within the last second (S91)? slot: the MAC's first owner, 0 = nobody. If the
 * MAC's guest runs elsewhere, its frames rightly come from there (S99). */
SEPARATE u32 sent_by_us(u32 half, u32 slot, u32 segment, u64 mac, u64 now)
{
	struct mac_key k = { .segment = segment };
	u32 owner = first_awake(half, slot);
	struct speaker *s;
	struct learned *e;
	u64 *at;

	if (slot && !owner)
		return 0;
	*(u32 *)k.mac = mac;
	*(u16 *)(k.mac + 4) = mac >> 32;
	at = bpf_map_lookup_elem(&marks, &k);
	if (at && recent(now, *at))
		return 1;
	e = bpf_map_lookup_elem(&macs, &k);
	if (e && e->sent && recent(now, e->sent - 1))
		return 1;
	if (owner_sent_recently(half, slot, &k, now))
		return 1;
	s = bpf_map_lookup_elem(&speakers, &owner);
	return s && own_sent_recently(s->word >> SPEAKER_SLOT_SHIFT, &k, now);
}

/* The MAC of one of our ports speaks outside, and that is no echo: another station may have it (S196). Not by RARP, by
 * which hypervisors and hosts announce a guest in its name, and not in a segment in which the port is not: there the
 * station takes nothing from it. */
INLINE void tell_outside(struct frame *f, u32 slot)
{
	u32 owner = first_awake(f->facts->half, slot);
	struct port *p = port_at(f->facts->half, owner);

	if (!owner || !p || p->flags & PORT_UPLINK || f->facts->type == TYPE_RARP || f->facts->class == CLASS_UNICAST)
		return;
	if (admits(f->facts->half, p, f->facts->segment))
		tell(owner, TELL_OUTSIDE, f->facts->slot, f->facts->segment, mac_number(f->facts->src));
}

/* The same for the source of a frame. Checked at most once per frame, and only for copies. */
NOINLINE u32 sent_recently(struct frame *f)
{
	u32 owner = owner_of(f, f->facts->src);
	u32 sent = sent_by_us(f->facts->half, owner, f->facts->segment, mac_number(f->facts->src), f->facts->now);

	if (UNLIKELY(owner) && !sent)
		tell_outside(f, owner);
	return sent;
}

/* Was the MAC learned on a port whose guest runs elsewhere? */
INLINE bool learned_of_waiting(u32 half, u32 slot)
{
	struct port *p = port_at(half, slot);

	return p && waits(slot, p);
}

/* An echo comes back right after the frame that it is of; whoever has moved speaks later, and again. Is this frame the
 * second one from outside since the last one of our own, and was neither right after that (S158)? */
INLINE bool speaks_outside(struct frame *f, const struct mac_key *k, struct learned *e)
{
	u64 last = e->seen, *marked = bpf_map_lookup_elem(&marks, k);

	if (owner_of(f, f->facts->src))
		return false;
	if (marked && *marked > last)
		last = *marked;
	if (e->sent > last + 1)
		last = e->sent - 1;
	if (elapsed(f->facts->now, last) * ECHOES_IN_A_SECOND < ticks_per_second)
		return false;
	if (e->outside && (s32)(e->outside - (u32)last) > 0)
		return true;
	e->outside = f->facts->now;
	return false;
}

/* If a learned MAC was silent here for a second, or its guest runs elsewhere, and it is now heard from outside, it
 * lives elsewhere now (S92, S99). What comes from a tunnel is never an echo, so its first frame counts (S155). */
INLINE void learn_from_uplink(struct frame *f)
{
	struct mac_key k;
	struct learned *e;
	bool left;
	u32 slot;

	if (!(f->in->flags & SWITCH_LEARNS))
		return;
	mac_key_of(&k, f->facts->segment, f->facts->src);
	e = bpf_map_lookup_elem(&macs, &k);
	if (!e)
		return;
	slot = e->slot;
	left = f->in->rules & RULE_TUNNEL || learned_of_waiting(f->facts->half, slot);
	if (!left &&
	    (recent(f->facts->now, e->seen) || sent_by_us(f->facts->half, owner_of(f, f->facts->src), f->facts->segment,
							  mac_number(f->facts->src), f->facts->now))) {
		if (speaks_outside(f, &k, e))
			forget(&k, e, f->facts->now); /* to the reflection check it is an echo yet (S91) */
		return;
	}
	if (!bpf_map_delete_elem(&macs, &k))
		hold(slot, -1);
	if (left)
		bpf_map_delete_elem(&marks, &k); /* the station was heard from outside, so its frames are no echo */
}
