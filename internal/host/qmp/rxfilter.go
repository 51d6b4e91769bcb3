package qmp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
)

// RxFilterChanged is the event by which QEMU reports that a guest's adapter changed its receive filter. QEMU sends it
// once and then not again until the filter has been read.
const RxFilterChanged = "NIC_RX_FILTER_CHANGED"

// RxFilter is a guest's configuration of its adapter's receive filter.
type RxFilter struct {
	Name string // the adapter's id in QEMU
	MAC  [6]byte
	// Promiscuous: the adapter accepts unicast frames for any address, because of its promiscuous mode or because
	// its list of further addresses is full.
	Promiscuous bool
}

// maxFilters limits how many adapters a guest may have.
const maxFilters = 256

// RxFilters reads the receive filters of the guest's adapters. Of QEMU's cards only virtio-net reports its filter;
// others are left out.
func (c *Client) RxFilters(ctx context.Context) ([]RxFilter, error) {
	out, err := c.Execute(ctx, "query-rx-filter", nil)
	if err != nil {
		return nil, err
	}
	return parseRxFilters(out)
}

func parseRxFilters(out json.RawMessage) ([]RxFilter, error) {
	var all []struct {
		Name        string `json:"name"`
		MainMAC     string `json:"main-mac"`
		Promiscuous bool   `json:"promiscuous"`
		Unicast     string `json:"unicast"`
		Overflow    bool   `json:"unicast-overflow"`
	}
	if err := json.Unmarshal(out, &all); err != nil {
		return nil, errors.New("the answer to query-rx-filter is not a list of filters")
	}
	if len(all) > maxFilters {
		return nil, fmt.Errorf("%d adapters tell a receive filter: more than %d are not believed", len(all), maxFilters)
	}
	filters := make([]RxFilter, len(all))
	for i, f := range all {
		mac, err := net.ParseMAC(f.MainMAC)
		if err != nil || len(mac) != 6 {
			return nil, fmt.Errorf("a receive filter has the MAC %.40q", f.MainMAC)
		}
		filters[i] = RxFilter{Name: f.Name, MAC: [6]byte(mac), Promiscuous: f.Promiscuous || f.Overflow ||
			f.Unicast == "all"}
	}
	return filters, nil
}
