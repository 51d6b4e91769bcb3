package hostnet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

const ntfUse = 1 // NTF_USE: look the neighbour up as if something were sent to it

// Answers has the kernel look for a neighbour on a device, by ARP or neighbour discovery, and says whether it has answered there so far.
// It does not wait: ask again a little later.
func (Net) Answers(index uint32, ip netip.Addr) (bool, error) {
	all, err := dump(unix.RTM_GETNEIGH, neighbourDump{}, unix.RTM_NEWNEIGH)
	if err != nil {
		return false, fmt.Errorf("read the neighbours: %w", err)
	}
	const answered = unix.NUD_REACHABLE | unix.NUD_STALE | unix.NUD_DELAY | unix.NUD_PROBE
	for _, b := range all {
		if at, ok := netip.AddrFromSlice(attribute(b, neighbourHeader, unix.NDA_DST)); ok && at == ip && neighbourIndex(b) == index && neighbourState(b)&answered != 0 {
			return true, nil
		}
	}
	return false, look(index, ip)
}

type neighbourDump struct{}

func (neighbourDump) Len() int          { return neighbourHeader }
func (neighbourDump) Serialize() []byte { return make([]byte, neighbourHeader) }

func look(index uint32, ip netip.Addr) error {
	b := make([]byte, neighbourHeader)
	b[0] = unix.AF_INET
	if ip.Is6() {
		b[0] = unix.AF_INET6
	}
	binary.NativeEndian.PutUint32(b[4:], index)
	b[10] = ntfUse
	v := ip.AsSlice()
	b = binary.NativeEndian.AppendUint16(b, uint16(unix.SizeofRtAttr+len(v)))
	b = binary.NativeEndian.AppendUint16(b, unix.NDA_DST)
	return send(unix.RTM_NEWNEIGH, unix.NLM_F_CREATE, append(b, v...), unix.EEXIST)
}

// Remarks are what else has to do with a device and does not move with its addresses, each with its remedy.
func (Net) Remarks(name string, index uint32) ([]string, error) {
	var out []string
	for family, what := range map[int]string{unix.AF_INET: "ip rule", unix.AF_INET6: "ip -6 rule"} {
		all, err := dump(unix.RTM_GETRULE, family8(family), unix.RTM_NEWRULE)
		if err != nil {
			return nil, fmt.Errorf("read the policy rules: %w", err)
		}
		for _, b := range all {
			for kind, word := range map[uint16]string{unix.FRA_IIFNAME: "iif", unix.FRA_OIFNAME: "oif"} {
				if v := attribute(b, routeHeader, kind); strings.TrimRight(string(v), "\x00") == name {
					out = append(out, fmt.Sprintf("a policy rule says %s %s (%s): it stays and does not match the host port; add one for that", word, name, what))
				}
			}
		}
	}
	out = append(out, managers(name, index)...)
	slices.Sort(out)
	return out, nil
}

type family8 uint8

func (family8) Len() int            { return routeHeader }
func (f family8) Serialize() []byte { return append([]byte{uint8(f)}, make([]byte, routeHeader-1)...) }

// managers are the programs that would configure the device again.
func managers(name string, index uint32) (out []string) {
	if b, err := os.ReadFile(fmt.Sprintf("/run/systemd/netif/links/%d", index)); err == nil && !bytes.Contains(b, []byte("ADMIN_STATE=unmanaged")) {
		out = append(out, fmt.Sprintf("systemd-networkd manages %s and may give it its addresses again: put [Link] Unmanaged=yes into its .network file, and one for the host port", name))
	}
	if b, err := os.ReadFile(fmt.Sprintf("/run/NetworkManager/devices/%d", index)); err == nil && bytes.Contains(b, []byte("managed=true")) {
		out = append(out, fmt.Sprintf("NetworkManager manages %s and may give it its addresses again: run nmcli device set %s managed no", name, name))
	}
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		words := strings.Split(strings.TrimRight(string(b), "\x00"), "\x00")
		if slices.Contains([]string{"dhclient", "dhcpcd", "udhcpc"}, filepath.Base(words[0])) && slices.Contains(words, name) {
			out = append(out, fmt.Sprintf("%s runs for %s (process %s): its address ends with its lease; end it, and start it for the host port", filepath.Base(words[0]), name, filepath.Base(filepath.Dir(path))))
		}
	}
	return out
}

// ErrNoProbe says that nobody is known whose answer would show that the host is reachable.
var ErrNoProbe = errors.New("no default gateway goes by the device, so that nothing tells whether the network is still reached after the move")

// Probes are the neighbours whose answers show that the network is reached: those asked for, else the default gateways.
func (c *Config) Probes(asked []netip.Addr) ([]netip.Addr, error) {
	from := asked
	if len(from) == 0 {
		from = c.Gateways
	}
	var out []netip.Addr
	for _, ip := range from {
		if !slices.Contains(c.Fixed, ip) {
			out = append(out, ip)
		}
	}
	if len(out) == 0 {
		return nil, ErrNoProbe
	}
	return out, nil
}
