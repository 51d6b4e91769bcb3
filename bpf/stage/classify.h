/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Which segment a frame belongs to (frame-rules §2). */
#pragma once
#include "core/segment.h"

/* Finds the segment; returns the reason if the port does not accept the frame. */
INLINE enum reason classify(struct frame *f)
{
	struct port *p = f->in;
	u32 vid = f->facts->came.tci & VID_MASK;
	bool ad = f->facts->came.protocol == TYPE_VLAN_AD && vid;

	if (p->vlan_mode != VLAN_TRUNK) {
		if (f->facts->came.protocol && (vid || is_tag(f->facts->type)))
			return REASON_GUEST_TAGGED;
		f->facts->segment = segment_of(p, p->vlan_mode == VLAN_ACCESS ? p->access : 0, false);
		return REASON_NONE;
	}
	f->facts->segment = segment_of(p, vid, ad);
	if (admits(f->facts->half, p, f->facts->segment))
		return REASON_NONE;
	return p->flags & PORT_UPLINK ? REASON_UPLINK_VLAN : REASON_VLAN_NOT_ALLOWED;
}
