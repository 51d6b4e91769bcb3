/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Who has an address for sure (frame-rules §10, S154). One announcement must not silence an owner: while this host answers
 * for an address, or keeps questions to itself, its owner hears no question and can't contradict. So whoever takes over an
 * address is unverified at first, and questions pass to all hosts as if nobody were known. */
#pragma once
#include "overlay/neighbours.h"

INLINE u16 eighths_of(const struct neighbour *k)
{
	return k->now * EIGHTHS / ticks_per_second;
}

/* Has a question passed so lately that an answer to it may still come? */
INLINE bool is_asked(const struct neighbour *k, const struct binding *b)
{
	return b->flags & BINDING_ASKED && (u16)(eighths_of(k) - b->asked) <= DEFENCE_TIME * EIGHTHS;
}

/* Is the packet its sender's answer to a question that has passed? */
INLINE bool is_answer(const struct neighbour *k, const struct binding *b)
{
	return k->answers && is_asked(k, b);
}

/* Does the answer make its sender the owner of an address that another MAC had? Who probes an address asks only who has it:
 * the prober's own answer to its probe proves nothing. */
INLINE bool is_new_owners_answer(const struct neighbour *k, const struct binding *was)
{
	return is_answer(k, was) && !(was->flags & BINDING_PROBED);
}

INLINE void note_question(const struct neighbour *k, struct binding *b)
{
	b->asked = eighths_of(k);
	b->flags = (b->flags & ~BINDING_PROBED) | BINDING_ASKED;
}

/* A doubt ends some time after the last question, as long as a binding holds: nobody else has said meanwhile that the
 * address is his. */
INLINE bool is_doubt_over(const struct neighbour *k, const struct binding *b)
{
	return b->flags & BINDING_ASKED && (u16)(eighths_of(k) - b->asked) > k->hold * EIGHTHS / ticks_per_second;
}

/* Is it sure that the owner has the address that is asked for? If not, the question passes: the owner's answer to it makes
 * it sure, and so does the silence of who had the address before, if this tunnel would have heard that one. */
INLINE bool is_sure(const struct neighbour *k, struct binding *b)
{
	if (!(b->flags & BINDING_UNVERIFIED))
		return true;
	if (is_asked(k, b) && !(b->flags & BINDING_PROBED))
		return false;
	if (is_doubt_over(k, b) || (b->flags & BINDING_ASKED && !(b->flags & BINDING_UNHEARD))) {
		b->flags &= ~BINDING_DOUBTS;
		return true;
	}
	/* The answer of an owner on this host may not pass the tunnel: further questions do not prolong the doubt. */
	if (!(b->flags & BINDING_HERE) || !(b->flags & BINDING_ASKED))
		note_question(k, b);
	return false;
}

INLINE u16 answer_hash(const struct neighbour *k)
{
	u64 sum = (u64)k->asked.address[0] << 32 | k->asked.address[1];

	sum = sum * 0x9e3779b97f4a7c15 + ((u64)k->asked.address[2] << 32 | k->asked.address[3]);
	sum = sum * 0x9e3779b97f4a7c15 + ((u64) * (const u32 *)k->found << 16 | *(const u16 *)(k->found + 4));
	return (sum * 0x9e3779b97f4a7c15 >> 48) | 1;
}

/* Does the asker ask again though it was told the same before? Then it does not reach the owner there: its kernel asks all
 * only after the one that it knows did not answer. Others are asked, so that an owner that has moved without a word is
 * found (S159). */
INLINE bool asks_again(const struct neighbour *k, struct neighbour_speaker *s)
{
	u16 hash = answer_hash(k), since = eighths_of(k) - s->answered;
	struct binding *b;

	if (s->answer != hash || since > ASKED_AGAIN_MOST) {
		s->answer = hash;
		s->answered = eighths_of(k);
		return false;
	}
	if (since < ASKED_AGAIN_LEAST)
		return false;
	s->answered = eighths_of(k);
	b = bpf_map_lookup_elem(&bindings, &k->asked);
	if (b)
		note_question(k, b);
	return true;
}

/* A station finds out whether another one has an address, and will take it if nobody answers (RFC 5227, RFC 4862). The
 * owner is asked by the probe itself. If both are on this host, nothing is in doubt: the owner hears the probe whatever
 * the tunnel does, and its answer does not pass the tunnel. */
INLINE void doubt(struct neighbour *k)
{
	struct binding *b = bpf_map_lookup_elem(&bindings, &k->asked);
	struct neighbour_speaker *s;

	if (!b || b->flags & BINDING_UNVERIFIED || b->flags & k->says & BINDING_HERE ||
	    same_mac(b->mac, k->speaker.mac))
		return;
	s = share_of(k);
	if (!s || s->bindings >= BINDINGS_PER_SECOND)
		return;
	s->bindings++;
	note_question(k, b);
	b->flags |= BINDING_UNVERIFIED | BINDING_UNHEARD | BINDING_PROBED;
}
