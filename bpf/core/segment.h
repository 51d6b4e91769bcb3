/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Segments: how they are numbered, and which of them a port admits (frame-rules §2). */
#pragma once
#include "core/frame.h"

enum segment_bits {
	VID_MASK = 0x0fff,
	SEGMENT_AD = 0x1000,
	SEGMENT_SWITCH_SHIFT = 16,
	TCI_PRIORITY = 0xf000, /* PCP and DEI */
};

INLINE u32 segment_of(const struct port *p, u32 vid, bool ad)
{
	return (p->switch_id + 1U) << SEGMENT_SWITCH_SHIFT | (ad ? SEGMENT_AD : 0) | vid;
}

INLINE bool in_vlan_set(u32 half, const struct port *p, u32 vid)
{
	u32 i = half * MAX_VLAN_SETS + p->vlan_set;
	struct vlan_set *set = bpf_map_lookup_elem(&vlan_sets, &i);

	return set && set->bits[(vid / 64) & 63] >> (vid % 64) & 1;
}

/* Does the port admit the segment? For uplinks: is it in the uplink's range? */
INLINE bool admits(u32 half, const struct port *p, u32 segment)
{
	u32 vid = segment & VID_MASK;
	bool ad = segment & SEGMENT_AD;

	if (segment >> SEGMENT_SWITCH_SHIFT != p->switch_id + 1U)
		return false;
	if (p->vlan_mode != VLAN_TRUNK)
		return !ad && vid == (p->vlan_mode == VLAN_ACCESS ? p->access : 0);
	if (vid && !(p->flags & PORT_UPLINK) && ad != !!(p->flags & PORT_OUTER_AD))
		return false;
	return in_vlan_set(half, p, vid);
}

/* The segment that the frame's tag names, whether or not the switch uses it. */
INLINE u32 tagged_segment(const struct frame *f)
{
	u32 vid = f->facts->came.tci & VID_MASK;

	return segment_of(f->in, vid, f->facts->came.protocol == TYPE_VLAN_AD && vid);
}
