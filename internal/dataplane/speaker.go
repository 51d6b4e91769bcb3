package dataplane

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"heddle/internal/abi"
	"heddle/internal/dataplane/entries"
	"heddle/internal/observe"
	"heddle/internal/plan"
)

// Speakers lists the MACs with which another port than the owner sent last, sorted by the owner.
func (k *Kernel) Speakers() ([]observe.Speaker, error) {
	var all entries.Of[uint32, abi.Speaker]
	if err := all.Read(k.objects.Speakers); err != nil {
		return nil, fmt.Errorf("read where the MACs of siblings are: %w", err)
	}
	ports := make(map[uint32]plan.PortID, len(k.slots.Ports))
	for id, slot := range k.slots.Ports {
		ports[slot] = id
	}
	list := speakersOf(&all, ports)
	slices.SortFunc(list, func(a, b observe.Speaker) int { return strings.Compare(a.Owner.String(), b.Owner.String()) })
	return list, nil
}

// speakersOf decodes the table; ports are those in the plan, by slot.
func speakersOf(all *entries.Of[uint32, abi.Speaker], ports map[uint32]plan.PortID) (list []observe.Speaker) {
	for i, slot := range all.Keys {
		word := all.Values[i].Word
		owner, is := ports[slot]
		port, here := ports[uint32(word>>abi.SpeakerSlotShift)]
		if word == 0 || !is || !here || owner == port {
			continue
		}
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], word)
		list = append(list, observe.Speaker{Owner: owner, MAC: plan.MAC(b[:6]), Port: port})
	}
	return list
}
