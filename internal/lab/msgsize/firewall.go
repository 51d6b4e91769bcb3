package msgsize

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
	"time"

	"heddle/internal/lab/netns"
	"heddle/internal/lab/traffic"
)

// rules make a router a firewall: connections begin inside, and what belongs to none of them does not pass. The
// counters prove that the traffic went through it.
const rules = `table inet firewall {
	counter established {}
	counter begun {}
	counter refused {}
	chain forward {
		type filter hook forward priority filter; policy drop;
		ct state established,related counter name established accept
		ct state invalid counter name refused drop
		iifname "inside" oifname "outside" meta l4proto tcp ct state new counter name begun accept
		counter name refused drop
	}
}
`

func loadRules(ns *netns.NS) error {
	cmd := exec.Command("nft", "-f", "-")
	cmd.Stdin = strings.NewReader(rules)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err := ns.Start(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return fmt.Errorf("load the firewall's rules in %s (kernel options NF_TABLES_INET, NFT_CT): %w: %s", ns.Name,
			err, strings.TrimSpace(stderr.String()))
	}
	return nil
}

// counter is what a rule has counted.
type counter struct{ Packets, Bytes uint64 }

// counters reads the counters of a firewall, by name.
func counters(ns *netns.NS) (map[string]counter, error) {
	text, err := ns.Output("nft", "-j", "list", "counters", "table", "inet", "firewall")
	if err != nil {
		return nil, fmt.Errorf("read the firewall's counters: %w", err)
	}
	return parseCounters(text)
}

func parseCounters(text []byte) (map[string]counter, error) {
	var doc struct {
		Nftables []struct {
			Counter *struct {
				Name string `json:"name"`
				counter
			} `json:"counter"`
		} `json:"nftables"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("read the firewall's counters: %w", err)
	}
	all := map[string]counter{}
	for _, x := range doc.Nftables {
		if x.Counter != nil {
			all[x.Counter.Name] = x.Counter.counter
		}
	}
	for _, name := range []string{"established", "begun", "refused"} {
		if _, ok := all[name]; !ok {
			return nil, fmt.Errorf("the firewall has no counter %q: somebody has changed its rules", name)
		}
	}
	return all, nil
}

const (
	tryTime  = time.Minute
	lookTime = 10 * time.Millisecond // between two reads of a counter
)

// tryFirewall makes sure that a set's firewall lets connections out and none in.
func (r *rig) tryFirewall(ctx context.Context, g guests) error {
	ctx, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	pair, err := r.pair(setting{firewall, g})
	if err != nil {
		return err
	}
	out := traffic.Load{Kind: traffic.KindStream, Duration: time.Millisecond}
	if _, err := traffic.Measure(ctx, pair, out); err != nil {
		return fmt.Errorf("a connection from inside does not get through: %w", err)
	}
	back := netip.AddrPortFrom(netip.MustParseAddr(insideAddress(r.index[g], clientHost)), discard)
	return r.refuses(ctx, g, back)
}

// discard is a port at which nobody listens: a host answers it with a reset (RFC 863 assigns it to a service of that
// name).
const discard = 9

// refuses tries a connection from outside to an address until the firewall has counted it. An answer to it is an error.
func (r *rig) refuses(ctx context.Context, g guests, to netip.AddrPort) error {
	fw, err := r.namespace(g, filter)
	if err != nil {
		return err
	}
	from, err := r.namespace(g, far)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	answered := make(chan error, 1)
	go func() {
		_, err := traffic.Send(ctx, traffic.Endpoint{NS: from}, traffic.Load{Kind: traffic.KindStream,
			Duration: time.Millisecond}, to)
		answered <- err
	}()
	defer func() {
		cancel()
		<-answered
	}()
	for {
		now, err := counters(fw)
		if err != nil {
			return err
		}
		if now["refused"].Packets > 0 {
			return nil
		}
		select {
		case err := <-answered:
			answered <- err
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return errors.Join(errors.New("a connection from outside was not refused by the firewall"), err)
		case <-time.After(lookTime):
		}
	}
}
