/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* A capture's filter: a classic BPF program, to which pcap-filter(7) expressions compile. It runs on the frame as a
 * wire would carry it.
 *
 * It is interpreted, not translated and loaded. So captures begin and end without loading another program, no
 * expression can fail the verifier, and running captures miss nothing. The agent checks it before it writes it here. */
#pragma once
#include "capture/record.h"
#include "core/segment.h"

struct {
	MAP_UINT(type, MAP_ARRAY);
	MAP_UINT(max_entries, MAX_CAPTURES);
	MAP_UINT(map_flags, MAP_MMAPABLE);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct capture);
} captures SEC(".maps");

struct {
	MAP_UINT(type, MAP_ARRAY);
	MAP_UINT(max_entries, 1); /* as many as there are CPUs */
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct capture_scratch);
} capture_scratch SEC(".maps");

/* No other run can interfere: programs of this kind run with soft interrupts off. */
INLINE struct capture_scratch *capture_scratch_of_cpu(void)
{
	u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&capture_scratch, &cpu);
}

/* Fields of an instruction's code (linux/bpf_common.h). */
enum filter_code {
	F_LD = 0,
	F_LDX = 1,
	F_ST = 2,
	F_STX = 3,
	F_ALU = 4,
	F_JMP = 5,
	F_RET = 6,
	F_MISC = 7,
	F_IMM = 0x00,
	F_ABS = 0x20,
	F_IND = 0x40,
	F_MEM = 0x60,
	F_LEN = 0x80,
	F_MSH = 0xa0,
	F_SIZE = 0x18,
	F_WORD = 0x00,
	F_HALF = 0x08,
	F_BYTE = 0x10,
	F_USE_X = 0x08,
	F_ADD = 0x00,
	F_SUB = 0x10,
	F_MUL = 0x20,
	F_DIV = 0x30,
	F_OR = 0x40,
	F_AND = 0x50,
	F_LSH = 0x60,
	F_RSH = 0x70,
	F_NEG = 0x80,
	F_MOD = 0x90,
	F_XOR = 0xa0,
	F_JA = 0x00,
	F_JEQ = 0x10,
	F_JGT = 0x20,
	F_JGE = 0x30,
	F_JSET = 0x40,
	F_RET_A = 0x10,
	F_TXA = 0x80,
};

struct filter_run {
	struct __sk_buff *skb;
	struct capture *c;
	struct capture_scratch *s;
	u32 length;
	u32 tagged;
};

/* Reads 1, 2 or 4 bytes of the frame with its tag in it. */
INLINE bool filter_read(struct filter_run *r, u32 at, u32 size, u32 *value)
{
	u8 b[4] = {};
	u8 *p = b;

	if (at > MAX_SNAP || at + size > r->length)
		return false;
	if (at <= FILTER_HEAD - 4) {
		p = &r->s->frame[at];
	} else {
		s64 err;

		at -= r->tagged ? TAG : 0;
		if (size == 4)
			err = bpf_skb_load_bytes(r->skb, at, b, 4);
		else if (size == 2)
			err = bpf_skb_load_bytes(r->skb, at, b, 2);
		else
			err = bpf_skb_load_bytes(r->skb, at, b, 1);
		if (err)
			return false;
	}
	*value = ((u32)p[0] << 24 | (u32)p[1] << 16 | (u32)p[2] << 8 | p[3]) >> (32 - 8 * size);
	return true;
}

INLINE u32 filter_size(u32 code)
{
	switch (code & F_SIZE) {
	case F_WORD:
		return 4;
	case F_HALF:
		return 2;
	}
	return 1;
}

/* ld and ldx; false ends the filter without a match, as does reading beyond the frame. */
INLINE bool filter_load(struct filter_run *r, const struct filter_instruction *in)
{
	u32 code = in->code, value = in->k, at = in->k;

	switch (code & 0xe0) {
	case F_IND:
		at += r->s->x;
		/* fall through */
	case F_ABS:
		if (at < in->k || !filter_read(r, at, filter_size(code), &value))
			return false;
		break;
	case F_MSH: /* the length of an IPv4 header */
		if (!filter_read(r, at, 1, &value))
			return false;
		value = (value & 15) << 2;
		break;
	case F_MEM:
		value = r->s->memory[at & (FILTER_MEMORY - 1)];
		break;
	case F_LEN:
		value = r->length;
		break;
	}
	if ((code & 7) == F_LD)
		r->s->a = value;
	else
		r->s->x = value;
	return true;
}

INLINE bool filter_alu(struct filter_run *r, const struct filter_instruction *in)
{
	u32 v = in->code & F_USE_X ? r->s->x : in->k, a = r->s->a;

	switch (in->code & 0xf0) {
	case F_ADD:
		a += v;
		break;
	case F_SUB:
		a -= v;
		break;
	case F_MUL:
		a *= v;
		break;
	case F_DIV:
		if (!v)
			return false;
		a /= v;
		break;
	case F_MOD:
		if (!v)
			return false;
		a %= v;
		break;
	case F_OR:
		a |= v;
		break;
	case F_AND:
		a &= v;
		break;
	case F_XOR:
		a ^= v;
		break;
	case F_LSH:
		a = v < 32 ? a << v : 0;
		break;
	case F_RSH:
		a = v < 32 ? a >> v : 0;
		break;
	case F_NEG:
		a = -a;
		break;
	}
	r->s->a = a;
	return true;
}

INLINE void filter_jump(struct filter_run *r, const struct filter_instruction *in)
{
	u32 v = in->code & F_USE_X ? r->s->x : in->k;
	bool yes = false;

	switch (in->code & 0xf0) {
	case F_JA:
		r->s->pc += in->k;
		return;
	case F_JEQ:
		yes = r->s->a == v;
		break;
	case F_JGT:
		yes = r->s->a > v;
		break;
	case F_JGE:
		yes = r->s->a >= v;
		break;
	case F_JSET:
		yes = r->s->a & v;
		break;
	}
	r->s->pc += yes ? in->jump_true : in->jump_false;
}

/* One instruction; 1 ends the run. Jumps only go forward, so a run has at most as many steps as there are
 * instructions. */
static s64 filter_step(u32 i, struct filter_run *r)
{
	u32 pc = r->s->pc;
	struct filter_instruction *in;

	if (pc >= MAX_FILTER)
		return 1;
	in = &r->c->filter[pc];
	r->s->pc = pc + 1;
	switch (in->code & 7) {
	case F_LD:
	case F_LDX:
		return !filter_load(r, in);
	case F_ST:
		r->s->memory[in->k & (FILTER_MEMORY - 1)] = r->s->a;
		return 0;
	case F_STX:
		r->s->memory[in->k & (FILTER_MEMORY - 1)] = r->s->x;
		return 0;
	case F_ALU:
		return !filter_alu(r, in);
	case F_JMP:
		filter_jump(r, in);
		return 0;
	case F_RET:
		r->s->accepted = in->code & F_RET_A ? r->s->a : in->k;
		return 1;
	}
	if (in->code & F_TXA)
		r->s->a = r->s->x;
	else
		r->s->x = r->s->a;
	return 0;
}

/* Copies at most snap bytes of the frame after the record's header, as a wire would carry it. False when it could not
 * be read. */
INLINE bool copy_frame(struct __sk_buff *skb, struct capture_scratch *s, u32 snap)
{
	u32 head = 12, rest = snap < s->record.length ? snap : s->record.length;

	s->record.captured = rest;
	if (bpf_skb_load_bytes(skb, 0, s->frame, 12))
		return false;
	if (s->tag) {
		be16 tag[2] = { HTONS(s->tag >> 16), HTONS(s->tag) };

		__builtin_memcpy(s->frame + 12, tag, 4);
		head = 16;
	}
	if (rest <= head)
		return true;
	rest -= head;
	if (rest > MAX_SNAP - 16)
		return false;
	return !bpf_skb_load_bytes(skb, 12, s->frame + head, rest);
}

/* Does the capture's filter accept the frame? Nearly everything that filters read is in the first FILTER_HEAD bytes. */
INLINE bool filter_accepts(struct __sk_buff *skb, struct capture *c, struct capture_scratch *s)
{
	struct filter_run r = { .skb = skb, .c = c, .s = s, .length = s->record.length, .tagged = !!s->tag };

	if (!copy_frame(skb, s, FILTER_HEAD))
		return false;
	s->pc = s->a = s->x = s->accepted = 0;
	bpf_loop(c->filter_length < MAX_FILTER ? c->filter_length : MAX_FILTER, filter_step, &r, 0);
	return s->accepted;
}
