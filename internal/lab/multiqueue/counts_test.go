package multiqueue

import (
	"slices"
	"testing"
)

func TestQueuesOfADriverAreFoundByEitherName(t *testing.T) {
	for name, stats := range map[string]map[string]uint64{
		"until 6.9": {"rx_queue_0_packets": 1, "rx_queue_1_packets": 2, "tx_queue_0_packets": 3,
			"tx_queue_1_packets": 4, "rx_queue_0_bytes": 99},
		"since 6.10": {"rx0_packets": 1, "rx1_packets": 2, "tx0_packets": 3, "tx1_packets": 4, "rx1_drops": 99},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := byQueue(stats)
			if want := []Counts{{ToVM: 1, FromVM: 3}, {ToVM: 2, FromVM: 4}}; err != nil || !slices.Equal(got, want) {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
	if _, err := byQueue(map[string]uint64{"rx_packets": 1}); err == nil {
		t.Error("a driver that counts by adapter alone")
	}
}
