package hostnet

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Setting is a kernel parameter of a device, below net.ipv4.conf.DEVICE or net.ipv6.conf.DEVICE.
type Setting struct {
	Family string `json:"family"` // "ipv4" or "ipv6"
	Name   string `json:"name"`
	Value  string `json:"value"`
}

// carried returns the parameters that determine how the host uses a network through a device; a host port gets them
// from the device that it adopts. arp_ignore is not among them: the agent sets it on uplinks.
func carried() []Setting {
	var all []Setting
	for family, names := range map[string][]string{
		"ipv4": {"accept_local", "accept_redirects", "accept_source_route", "arp_accept", "arp_announce", "arp_filter",
			"arp_notify", "forwarding",
			"log_martians", "proxy_arp", "rp_filter", "secure_redirects", "send_redirects", "shared_media",
			"src_valid_mark", "tag"},
		"ipv6": {"accept_dad", "accept_ra", "accept_ra_defrtr", "accept_ra_min_hop_limit", "accept_ra_pinfo",
			"accept_ra_rt_info_max_plen", "accept_redirects",
			"accept_source_route", "autoconf", "forwarding", "hop_limit", "proxy_ndp", "ra_defrtr_metric",
			"router_solicitations", "use_tempaddr"},
	} {
		for _, n := range names {
			all = append(all, Setting{Family: family, Name: n})
		}
	}
	return all
}

// Carried reads the parameters that move with the addresses; those that this kernel does not have are left out.
func (n Net) Carried(device string) ([]Setting, error) {
	var kept []Setting
	for _, s := range carried() {
		now, err := n.Get(device, s)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		kept = append(kept, now)
	}
	return kept, nil
}

func (s Setting) path(device string) (string, error) {
	if strings.ContainsRune(device, '/') || device == "" || device == "." || device == ".." {
		return "", fmt.Errorf("%q is not a device name", device)
	}
	return filepath.Join("/proc/sys/net", s.Family, "conf", device, s.Name), nil
}

// Get returns the present value of the parameter; the error is os.ErrNotExist on a kernel without it.
func (Net) Get(device string, s Setting) (Setting, error) {
	path, err := s.path(device)
	if err != nil {
		return s, err
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return s, fmt.Errorf("read %s of device %s: %w", s.Name, device, err)
	}
	s.Value = strings.TrimSpace(string(b))
	return s, nil
}

// Set sets parameters of a device. One that already has the value is not written, because writing may have other
// effects. One that this kernel, or the device, does not have is left out.
func (n Net) Set(device string, all ...Setting) error {
	var errs []error
	for _, s := range all {
		now, err := n.Get(device, s)
		if errors.Is(err, os.ErrNotExist) || err == nil && now.Value == s.Value {
			continue
		}
		path, errPath := s.path(device)
		if err = errors.Join(err, errPath); err == nil {
			err = os.WriteFile(path, []byte(s.Value), 0)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, fmt.Errorf("set %s of device %s to %s: %w", s.Name, device, s.Value, err))
		}
	}
	return errors.Join(errs...)
}
