package network

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"heddle/internal/api"
	"heddle/internal/cli"
)

// mostVNIs is how many segments of a tunnel are named; JSON has all.
const mostVNIs = 12

// PrintTunnel shows the tunnel of a switch; host is the row with the host's name, if there is one.
func PrintTunnel(w io.Writer, host [][2]string, u api.Uplink) error {
	t := u.Tunnel
	rows := [][2]string{{"uplink", u.Name}, {"switch", u.Switch}, {"device", u.Device}, {"state", string(u.State)},
		{"reason", u.Reason}, {"carried as", fmt.Sprintf("VXLAN, UDP port %d", t.Port)}, {"mtu", cli.Number(u.MTU)},
		{"endpoints here", strings.Join(t.Endpoints, ", ")}, {"segments here", vnisText(t.VNIs)},
		{"replication", t.Replication}, {"learns from frames", cli.YesNo(t.Learning)}, {"monitoring", u.Monitoring}}
	if err := cli.Properties(w, slices.Concat(host, rows)); err != nil {
		return err
	}
	if t.Known == 0 {
		_, err := fmt.Fprintln(w, "\nno endpoint of another host is known: nothing leaves. A host without controllers "+
			"has them from\nthe tunnel's peers in its file, others from the controllers once two hosts have ports in "+
			"a segment")
		return err
	}
	head := []string{"OTHER HOST", "ENDPOINT", "SEGMENTS IN COMMON"}
	tab := &cli.Table{Head: head, Right: cli.Columns(head, "SEGMENTS IN COMMON"), Keep: cli.Columns(head, "ENDPOINT",
		"SEGMENTS IN COMMON"), Names: cli.Columns(head, "OTHER HOST")}
	for _, p := range t.Peers {
		tab.Add(cli.Dash(p.Host), p.Address, amount(p.Segments))
	}
	fmt.Fprintln(w)
	err := tab.Write(w)
	if more := int(t.Known) - len(t.Peers); more > 0 && err == nil {
		_, err = fmt.Fprintf(w, "and %d more\n", more)
	}
	return err
}

// vnisText names overlay segments; "" for none.
func vnisText(list []uint32) string {
	words := make([]string, 0, mostVNIs+1)
	for i, vni := range list {
		if i == mostVNIs {
			words = append(words, fmt.Sprintf("and %d more", len(list)-i))
			break
		}
		words = append(words, strconv.FormatUint(uint64(vni), 10))
	}
	if len(words) == 0 {
		return ""
	}
	return "VNI " + strings.Join(words, ", ")
}
