/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* One frame on its way: what was read from it once, and what the stages found out.
 *
 * In the common case, with a known receiver and nobody listening in, all of it stays in registers: it is only passed to
 * inlined functions. Everything else works on a copy of the facts in memory of the CPU (stage/aside.h). */
#pragma once
#include "core/record.h"

volatile const u64 ticks_per_second = 1000;

enum ether {
	ETH_HEADER = 14,
	TAG = 4,
	TYPE_VLAN = 0x8100,
	TYPE_VLAN_AD = 0x88a8,
	TYPE_IPV4 = 0x0800,
	TYPE_IPV6 = 0x86dd,
	TYPE_SLOW = 0x8809, /* LACP, markers, OAM */
	TYPE_EAPOL = 0x888e,
	TYPE_LLDP = 0x88cc,
	TYPE_PTP = 0x88f7,
	TYPE_BEACON = 0x8922, /* beacon probing, and probes between hosts */
	GSO_MIN_HEADERS = 28, /* IPv4 + UDP */
	GSO_ANY_LENGTH = 0xffff, /* instead of a size: the packets have different lengths (SCTP) */
};

struct tag {
	u16 protocol; /* 0 = no tag */
	u16 tci;
};

/* What was read from the frame once, and what the stages found out. It has no pointers, so that it can lie in a table
 * (stage/aside.h). */
struct facts {
	u64 now;
	u64 owner_seed;
	u32 slot; /* arrival port */
	u32 half;
	u32 segment;
	u32 l3_length;
	u32 bare; /* length without the outermost tag */
	u32 class;
	u16 type; /* after the outermost tag */
	u8 dst[6] __attribute__((aligned(4))); /* compared as words */
	u8 src[6] __attribute__((aligned(4)));
	u8 to_host; /* the host's stack gets the frame as well */
	u8 from_host; /* a frame of the host's own that leaves by the uplink at slot */
	u8 delivered;
	u8 reflected; /* 0 = not checked yet, 1 = no, 2 = yes */
	u8 lowest_refusal;
	u8 packet_known; /* see core/packet.h */
	u16 sole; /* slot of the only receiver that got a copy; 0 = none, several, or the host's stack */
	struct tag came; /* outermost tag as it arrived */
	struct tag now_on; /* outermost tag of the segment that is on the skb now */
	u32 pending; /* accepted receiver that has not been handed its copy yet */
	u32 known; /* slot of the known receiver, 0 = none */
};

struct frame {
	struct __sk_buff *skb;
	struct port *in;
	struct counters *count; /* of the arrival port */
	struct facts *facts;
};

/* Added to the slot of an uplink as a receiver: the receiver is not the uplink's wire, but the host's own stack behind
 * it. */
enum { HOST_BEHIND = 1 << 16 };

INLINE u64 clock(void)
{
	if (recording) {
		struct record_control *ctl = record_ctl();

		return ctl ? ctl->now : 0;
	}
	return bpf_jiffies64();
}

INLINE struct control *plan_in_force(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&control, &zero);
}

INLINE struct port *port_at(u32 half, u32 slot)
{
	u32 i = half * MAX_PORTS + slot;

	return bpf_map_lookup_elem(&ports, &i);
}

INLINE struct counters *counters_of(u32 slot)
{
	return bpf_map_lookup_elem(&counts, &slot);
}

INLINE u32 slot_of(u32 ifindex)
{
	u32 *slot;

	if (LIKELY(ifindex < MAX_DIRECT_IFINDEX)) {
		slot = bpf_map_lookup_elem(&slot_by_ifindex, &ifindex);
		return slot ? *slot : 0;
	}
	NO_MERGE();
	slot = bpf_map_lookup_elem(&slot_by_high_ifindex, &ifindex);
	return slot ? *slot : 0;
}

INLINE bool is_tag(u16 type)
{
	return type == TYPE_VLAN || type == TYPE_VLAN_AD;
}

INLINE bool mac_equal(const u8 *a, const u8 *b)
{
	return *(u32 *)a == *(u32 *)b && *(u16 *)(a + 4) == *(u16 *)(b + 4);
}

INLINE bool mac_zero(const u8 *a)
{
	return !(*(u32 *)a | *(u16 *)(a + 4));
}

/* Moves a tag from the bytes to the metadata beside the frame, where the kernel holds it on a live device (K22). A pop
 * that uncovers a cut-off second tag reports an error after it has done its work, so its result is ignored; the push
 * puts the tag back. */
INLINE bool tag_beside(struct __sk_buff *skb, u16 type)
{
	be16 tci;

	if (skb->len < ETH_HEADER + TAG + 2)
		return false;
	if (bpf_skb_load_bytes(skb, ETH_HEADER, &tci, 2))
		return false;
	bpf_skb_vlan_pop(skb);
	return !bpf_skb_vlan_push(skb, HTONS(type), NTOHS(tci));
}

INLINE bool read_header(struct frame *f)
{
	struct __sk_buff *skb = f->skb;
	u8 *p = (u8 *)(u64)skb->data;

	if (UNLIKELY(p + ETH_HEADER > (u8 *)(u64)skb->data_end)) {
		if (bpf_skb_pull_data(skb, ETH_HEADER))
			return false;
		p = (u8 *)(u64)skb->data;
		if (p + ETH_HEADER > (u8 *)(u64)skb->data_end)
			return false;
	}
	/* words: the supported architectures read them unaligned, and a byte-wise copy takes three times as long */
	*(u32 *)f->facts->dst = *(u32 *)p;
	*(u16 *)(f->facts->dst + 4) = *(u16 *)(p + 4);
	*(u32 *)f->facts->src = *(u32 *)(p + 6);
	*(u16 *)(f->facts->src + 4) = *(u16 *)(p + 10);
	f->facts->type = NTOHS(*(be16 *)(p + 12));
	return true;
}

/* Reads the frame; false = malformed (frame-rules §0). */
INLINE bool read_frame(struct frame *f)
{
	struct __sk_buff *skb = f->skb;
	u32 tags = 0;

	if (!read_header(f))
		return false;
	f->facts->bare = skb->len;
	f->facts->class = f->facts->dst[0] & 1 ? CLASS_MULTICAST : CLASS_UNICAST;
	if (f->facts->class && *(u32 *)f->facts->dst == 0xffffffff && *(u16 *)(f->facts->dst + 4) == 0xffff)
		f->facts->class = CLASS_BROADCAST;
	if (!skb->vlan_present && UNLIKELY(is_tag(f->facts->type))) {
		if (!tag_beside(skb, f->facts->type) || !read_header(f))
			return false;
	}
	if (skb->vlan_present) {
		f->facts->came.protocol = NTOHS(skb->vlan_proto);
		f->facts->came.tci = skb->vlan_tci;
		f->facts->bare = skb->len;
		tags = is_tag(f->facts->type) ? 2 : 1;
		if (f->facts->bare + TAG < ETH_HEADER + TAG * tags + 2)
			return false;
	}
	f->facts->now_on = f->facts->came;
	f->facts->l3_length = f->facts->bare - ETH_HEADER - (tags == 2 ? TAG : 0);
	if (skb->gso_size)
		f->facts->l3_length = GSO_MIN_HEADERS + (skb->gso_size == GSO_ANY_LENGTH ? 0 : skb->gso_size);
	return true;
}

INLINE u32 frame_bytes(struct frame *f)
{
	return f->facts->bare + (f->facts->came.protocol ? TAG : 0);
}
