package ipfix

// reversible reports whether a public element has a reverse one. Elements that belong to the exporter or to the record
// as a whole, and not to one direction of the traffic, have none (RFC 5103 §6.1, with the sections of RFC 5102 that it
// names).
func reversible(id uint16) bool {
	switch id {
	case 10, 14, 137, 138, 141, 142, 143, 144, 145, 148, 149: // identifiers, RFC 5102 §5.1
		return false
	case 130, 131, 173, 211, 212, 213, 214, 215, 216, 217: // configuration of metering and export, §5.2
		return false
	case 40, 41, 42, 163, 164, 165, 166, 167, 168: // statistics of metering and export, §5.3
		return false
	case 210, 239: // paddingOctets, biflowDirection
		return false
	}
	return true
}
