package agent

import (
	"slices"

	"heddle/internal/spec"
)

// ownConfig is the configuration of a host that leaves its cluster, with the peers of its tunnels as far as a file may
// list them. What other hosts have said keeps no host from leaving.
func (sl *slicing) ownConfig(whole *spec.Config, peers func(sw string) []spec.TunnelPeer) (cfg *spec.Config,
	text []byte, err error) {
	with := *whole
	with.Switches = slices.Clone(whole.Switches)
	for i := range with.Switches {
		sw := &with.Switches[i]
		list := peers(sw.Name)
		if sw.Tunnel == nil || len(list) == 0 {
			continue
		}
		listed, invalid, tooMany := fitting(list)
		if len(invalid)+len(tooMany) > 0 {
			sl.log.Warn("some endpoints of other hosts do not become peers in this host's own configuration: guests "+
				"reach none behind them", "switch", sw.Name, "not valid", labels(invalid), "too many", labels(tooMany),
				"most", spec.MaxTunnelPeers)
		}
		tunnel := *sw.Tunnel
		tunnel.Peers = listed
		sw.Tunnel = &tunnel
	}
	if cfg, text, err = reread(&with); err == nil {
		return cfg, text, nil
	}
	sl.log.Error("the endpoints of other hosts do not become peers in this host's own configuration: guests in "+
		"overlay segments reach those of other hosts no more until its file lists them", "err", err)
	return reread(whole)
}

// reread is a configuration as a file has it.
func reread(cfg *spec.Config) (*spec.Config, []byte, error) {
	text, err := spec.Format(cfg)
	if err != nil {
		return nil, nil, err
	}
	read, err := spec.Parse(afterLeaving, text)
	return read, text, err
}

// fitting parts the peers that a file may list from the others.
func fitting(list []spec.TunnelPeer) (listed, invalid, tooMany []spec.TunnelPeer) {
	for _, p := range list {
		switch {
		case !p.Valid():
			invalid = append(invalid, p)
		case len(listed) == spec.MaxTunnelPeers:
			tooMany = append(tooMany, p)
		default:
			listed = append(listed, p)
		}
	}
	return listed, invalid, tooMany
}

// labels name the first few peers of a list, and say how many there are in all.
func labels(list []spec.TunnelPeer) (names []string) {
	for i := range list {
		if i == mostLogged {
			return append(names, "and others, of "+count(len(list), "peer"))
		}
		names = append(names, list[i].Label()+" "+list[i].Address)
	}
	return names
}
