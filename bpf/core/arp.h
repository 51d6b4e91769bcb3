/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* ARP for IPv4 over Ethernet (RFC 826), behind the Ethernet header. */
#pragma once
#include "core/frame.h"

enum arp_form {
	TYPE_ARP = 0x0806,
	ARP_LENGTH = 28,
	ARP_SENDER = 14, /* offset of the sender's address */
	ARP_ETHERNET = 1,
	ARP_REQUEST = 1,
	ARP_REPLY = 2,
};

struct arp {
	be16 hardware;
	be16 protocol;
	u8 hardware_length;
	u8 protocol_length;
	be16 operation;
	u8 sender_mac[6];
	u8 sender[4];
	u8 target_mac[6];
	u8 target[4];
};

_Static_assert(sizeof(struct arp) == ARP_LENGTH, "an ARP packet is read as a whole");

/* Are its addresses those of Ethernet and of IPv4? */
INLINE bool is_arp_of_ipv4(const struct arp *a)
{
	return a->hardware == HTONS(ARP_ETHERNET) && a->protocol == HTONS(TYPE_IPV4) && a->hardware_length == 6 &&
	       a->protocol_length == 4;
}
