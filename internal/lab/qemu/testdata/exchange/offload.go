package main

import (
	"fmt"
	"strings"

	"github.com/safchain/ethtool"
)

// offload sets what a device takes off its senders: "whole" is all it can, "cut" no segmentation, "plain" no checksums
// either. Its receiver puts segments together unless merge is "apart".
func offload(device, how, merge string) error {
	tool, err := ethtool.NewEthtool()
	if err != nil {
		return err
	}
	defer tool.Close()
	have, err := tool.FeaturesWithState(device)
	if err != nil {
		return err
	}
	want := map[string]bool{"rx-gro": merge != "apart"}
	for name, f := range have {
		if !strings.HasPrefix(name, "tx-") || !f.Available || f.NeverChanged {
			continue
		}
		switch {
		case strings.Contains(name, "segmentation") || name == "tx-gso-partial":
			want[name] = how == "whole"
		case strings.HasPrefix(name, "tx-checksum"):
			want[name] = how != "plain"
		}
	}
	if err := tool.Change(device, want); err != nil {
		return fmt.Errorf("set %v: %w", want, err)
	}
	return nil
}
