package definition

import (
	"context"
	"fmt"
	"strings"
	"time"

	"heddle/internal/api"
	"heddle/internal/cli"
)

// showHostsEvery is how often the hosts are looked at that a change waits for.
const showHostsEvery = time.Second

// mostHostsShown is how many hosts a line of progress names.
const mostHostsShown = 4

// showHosts shows on a terminal which hosts a change of the definition waits for, until what it returns is called.
func showHosts(d cli.Deps, ctx context.Context, f *api.Fleet) (stop func()) {
	if !d.Watched {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		shown := false
		for tick := time.NewTicker(showHostsEvery); ; {
			select {
			case <-ctx.Done():
				tick.Stop()
				if shown {
					fmt.Fprint(d.Stderr, cli.ClearLine)
				}
				return
			case <-tick.C:
			}
			list, err := f.Hosts(ctx)
			if err != nil {
				continue
			}
			if line := pendingLine(list); line != "" || shown {
				fmt.Fprint(d.Stderr, cli.ClearLine+line)
				shown = true
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// pendingLine names the hosts that have not answered yet, "" for none.
func pendingLine(list *api.FleetHosts) string {
	var names []string
	for _, h := range list.Hosts {
		if h.State == api.HostPending {
			names = append(names, h.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	line := fmt.Sprintf("waiting for %d of %s: ", len(names), cli.HowMany(len(list.Hosts), "host"))
	if more := len(names) - mostHostsShown; more > 0 {
		return line + strings.Join(names[:mostHostsShown], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return line + strings.Join(names, ", ")
}
