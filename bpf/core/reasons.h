/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Why a frame, or one copy of it, was dropped or refused. Public names: the Go side derives "port-blocked" from
 * REASON_PORT_BLOCKED. Numbers never change; docs/reference/frame-rules.md says when each applies. */
#pragma once

enum reason {
	REASON_NONE = 0, /* delivered */
	/* reasons for a whole frame */
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
	/* reasons for a whole frame or for one copy */
	REASON_MTU_EXCEEDED = 13,
	REASON_UPLINK_VLAN = 14,
	REASON_NO_UPLINK = 15,
	/* reasons for one copy */
	REASON_RECEIVER_BLOCKED = 16,
	REASON_RECEIVER_DOWN = 17,
	REASON_MAC_CHANGE = 18,
	REASON_REVERSE_PATH = 19,
	REASON_REFLECTED = 20,
	REASON_DEVICE_REFUSED = 21, /* the device did not accept the copy */
	REASON_STORM_CONTROL = 22, /* for a whole frame, or for all its copies to ports */
	/* 23 stays free for a reason that everyday traffic causes at high rates on many CPUs: see reason_room. */
	REASON_GUEST_LINK_CONTROL = 24,
	REASON_MAC_TABLE_FULL = 25, /* for a whole frame: the host's table of learned MACs is full */
	REASON_LOOP_BLOCKED = 26, /* a loop goes through the port, or the frame is a probe that looks for one */
	REASON_RECEIVER_WAITING = 27, /* for one copy: the receiver's guest is to arrive by a migration */
	REASON_IP_SOURCE_NOT_ALLOWED = 28, /* the port's owner sent IP from an address that is not its own */
	REASON_ARP_SENDER_NOT_ALLOWED = 29, /* likewise ARP */
	REASON_ND_TARGET_NOT_ALLOWED = 30, /* it advertised such an address to its neighbours */
	REASON_GUEST_DHCP_SERVER = 31,
	REASON_GUEST_ROUTER_ADVERTISEMENT = 32,
	REASON_GUEST_ELSEWHERE = 33, /* for one copy: the receiver's guest has left by a migration */
	REASON_TUNNEL_UNKNOWN_ENDPOINT = 34, /* an overlay frame from an endpoint that this host was not told of */
	REASON_TUNNEL_UNKNOWN_VNI = 35, /* an overlay frame for a segment that this host does not have */
	REASON_TUNNEL_MTU = 36, /* for one copy: with the outer header it does not fit the underlay */
	REASON_TUNNEL_NO_ENDPOINT = 37, /* for one copy: the tunnel knows no endpoint to send it to */
	REASON_NEIGHBOUR_ANSWERED = 38, /* for one copy: the tunnel answered who has an address, and asks nobody */
	REASON_NEIGHBOUR_HERE = 39, /* for one copy: it asks who has an address, and its owner is on this host */
	REASON_NEIGHBOUR_LIMIT = 40, /* for one copy: its sender asks more often than it is answered */
	REASON_GUEST_HEALTH_PROBE = 41, /* the port's owner sent a frame of the type of probes between hosts */
	REASON_COUNT, /* one more than the highest */
};

/* Where drops and refused copies are counted. Reasons that occur in everyday traffic are counted in each CPU's own
 * record. A record for every reason, port and CPU would take gigabytes on a large host, so the other reasons are
 * counted in one record of the port that all CPUs share. */
enum reason_room {
	REASONS_PER_CPU = 24, /* reasons below this are in struct counters */
	REASONS_RARE = 64, /* the rest, from REASONS_PER_CPU on, are in struct rare_counters */
};

_Static_assert(REASON_COUNT <= REASONS_PER_CPU + REASONS_RARE, "every reason has its place in a table of counters");
