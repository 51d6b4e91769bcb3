package linkproto

import (
	"heddle/internal/uplinks/beacon"
	"heddle/internal/uplinks/cdp"
	"heddle/internal/uplinks/lacp"
	"heddle/internal/uplinks/lldp"
	"heddle/internal/uplinks/stp"
	"heddle/internal/uplinks/wire"
)

// hearsLACP returns the filter for LACPDUs and markers: frames to the slow protocols' group, which no bridge forwards.
// Any other frame of their EtherType did not come from the other end of the cable, and is ignored (S98). A frame that
// is too short is the neighbour's error, and is counted.
func hearsLACP() wire.Listen {
	return wire.Listen{EtherType: lacp.EtherType, Groups: [][6]byte{lacp.Destination},
		Fields: []wire.Field{{Offset: 0, Values: [][]byte{{lacp.SubtypeLACP}, {lacp.SubtypeMarker}}}}}
}

// hearsLLDP returns the filter for frames to one of LLDP's groups. A malformed frame is the neighbour's error, and is
// counted.
func hearsLLDP() wire.Listen {
	listen := wire.Listen{EtherType: lldp.EtherType}
	for _, g := range lldp.Groups {
		listen.Groups = append(listen.Groups, g)
	}
	return listen
}

// hearsSTP returns the filter for BPDUs of bridges to their group, which no bridge forwards.
func hearsSTP() wire.Listen {
	return wire.Listen{LLC: true, Groups: [][6]byte{stp.Group},
		Fields: []wire.Field{{Offset: 0, Values: [][]byte{stp.LLC}}}}
}

// hearsCDP returns the filter for frames of CDP. What else is sent to its group has another protocol in its LLC.
func hearsCDP() wire.Listen {
	return wire.Listen{LLC: true, Groups: [][6]byte{cdp.Group},
		Fields: []wire.Field{{Offset: 0, Values: [][]byte{cdp.LLC}}}}
}

// hearsBeacons returns the filter for this sender's own beacons from the uplinks that send them; the groups define the
// senders. Beacons are broadcasts in the VLANs of the ports, so that they pass the networks in question. Guests receive
// them, too; the signature at the end of a beacon prevents forgery (beacon.Sender).
func hearsBeacons(s *beacon.Sender) wire.Listen {
	return wire.Listen{EtherType: beacon.EtherType, Groups: [][6]byte{beacon.Destination}, Tagged: true,
		MinPayload: beacon.MinSize,
		Fields: []wire.Field{{Offset: 0, Values: [][]byte{beacon.Head()}},
			{Offset: beacon.SenderOffset, Values: [][]byte{s.ID[:]}}}, Sources: [][6]byte{}}
}
