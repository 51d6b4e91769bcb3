/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Why a frame, or one copy of it, went no further. Public names: the Go side derives "port-blocked" from
 * REASON_PORT_BLOCKED. Numbers are kept for ever; docs/reference/frame-rules.md says when each applies. */
#pragma once

enum reason {
	REASON_NONE = 0, /* delivered */
	/* decided about the frame */
	REASON_MALFORMED = 1,
	REASON_PORT_BLOCKED = 2,
	REASON_SOURCE_GROUP = 3,
	REASON_SOURCE_ZERO = 4,
	REASON_GUEST_BPDU = 5,
	REASON_FORGED_TRANSMIT = 6,
	REASON_GUEST_TAGGED = 7,
	REASON_VLAN_NOT_ALLOWED = 8,
	REASON_MAC_LIMIT = 9,
	REASON_OWN_DESTINATION = 10,
	REASON_UNKNOWN_UNICAST = 11,
	REASON_NO_RECEIVER = 12,
	/* decided about the frame or about a copy */
	REASON_MTU_EXCEEDED = 13,
	REASON_UPLINK_VLAN = 14,
	REASON_NO_UPLINK = 15,
	/* decided about a copy */
	REASON_RECEIVER_BLOCKED = 16,
	REASON_RECEIVER_DOWN = 17,
	REASON_MAC_CHANGE = 18,
	REASON_REVERSE_PATH = 19,
	REASON_REFLECTED = 20,
	REASON_DEVICE_REFUSED = 21, /* the device took no clone */
	REASON_STORM_CONTROL = 22, /* decided about the frame, or about all its copies for ports */
	REASON_COUNT = 23,
};
