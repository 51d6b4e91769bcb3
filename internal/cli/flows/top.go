package flows

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/cli/top"
	"heddle/internal/cli/topcmd"
)

// flowTop is one run of "heddle flows top".
type flowTop struct {
	d     cli.Deps
	t     *cli.Target
	q     api.FlowTopQuery
	model top.FlowModel
	batch bool
	once  bool
	count int
	out   cli.Stream
}

func newFlowsTop(d cli.Deps, t *cli.Target) *cobra.Command {
	v, by := &flowTop{d: d, t: t}, ""
	c := &cobra.Command{
		Use: "top", Short: "Show flows by rate, live",
		Long: "Show the flows with the highest rates, live. ^ marks an uplink; in is from the port's owner into the " +
			"switch. Each row is what one port saw. The total above the table counts each packet once, though a " +
			"packet may be seen both where it enters and where it leaves the switch.\n\n" +
			"Keys: " + top.FlowHelp() + ".\n\n" +
			"Without a terminal, or with --batch, the view is printed --count times instead.",
		Example: "  heddle flows top\n  heddle flows top --port-group web --sort packets\n  heddle flows top --by " +
			"service\n  heddle flows top --once --limit 5\n  heddle flows top -o json -n 3", Args: cli.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := v.valid(); err != nil {
				return err
			}
			if c.Flags().Changed("by") {
				return v.runSums(c, by)
			}
			return v.run(c)
		},
	}
	v.t = t.Looking(d, c)
	flowFilterFlags(c, &v.q.FlowFilter)
	byFlag(c, &by)
	f := c.Flags()
	f.DurationVar(&v.q.Interval, "interval", api.ShortestFlowInterval, "time that rates are measured for")
	f.StringVar(&v.q.Sort, "sort", "bits", "what comes first: the most "+strings.Join(api.FlowTopSorts(), " or ")+
		" a second")
	f.IntVar(&v.q.Limit, "limit", 200, fmt.Sprintf("how many flows at most: 1–%d", api.MaxFlowTop))
	f.BoolVarP(&v.batch, "batch", "b", false, "print the view instead of showing it")
	f.IntVarP(&v.count, "count", "n", 0, "with --batch, how often; 0 is without end")
	f.BoolVar(&v.once, "once", false, "print it once: --batch --count 1")
	v.out.Flag(c, "; json and yaml are --batch too")
	_ = c.RegisterFlagCompletionFunc("sort", func(*cobra.Command, []string, string) ([]string,
		cobra.ShellCompDirective) {
		return api.FlowTopSorts(), cobra.ShellCompDirectiveNoFileComp
	})
	return c
}

func (v *flowTop) valid() error {
	switch {
	case !slices.Contains(api.FlowTopSorts(), v.q.Sort):
		return cli.Usagef("--sort %q: use one of %s", v.q.Sort, strings.Join(api.FlowTopSorts(), ", "))
	case v.out.Check() != nil:
		return v.out.Check()
	case v.q.Interval < api.ShortestFlowInterval:
		return cli.Usagef("--interval %v: it is %v or more", v.q.Interval, api.ShortestFlowInterval)
	case v.q.Limit < 1 || v.q.Limit > api.MaxFlowTop:
		return cli.Usagef("--limit %d: it is 1–%d", v.q.Limit, api.MaxFlowTop)
	case v.count < 0:
		return cli.Usagef("--count %d: it is 0 or more", v.count)
	case v.count > 0 && !v.batch && v.out.Text():
		return cli.Usagef("--count is for --batch")
	}
	return nil
}

func (v *flowTop) run(c *cobra.Command) error {
	v.model = top.FlowModel{FlowView: top.FlowView{Title: v.t.Title(), Interval: v.q.Interval, Sort: v.q.Sort,
		Only: onlyText(v.q.FlowFilter)}}
	all, err := v.t.Everywhere()
	if err != nil {
		return err
	}
	if all {
		update := func(t top.HostsFlows) { v.model.UpdateHosts(t, flowRow) }
		return showTops(c.Context(), v, tops[top.HostsFlows]{view: &v.model, follow: v.followTops, update: update,
			live: func(read func(context.Context, string) (top.HostsFlows, error)) top.View {
				return top.RunFlows(&v.model, read, update)
			}})
	}
	client, err := v.t.Client()
	if err != nil {
		return err
	}
	update := func(t api.FlowTop) { v.model.Update(t, flowRow) }
	return showTops(c.Context(), v, tops[api.FlowTop]{view: &v.model, update: update,
		follow: func(ctx context.Context, sort string, emit func(api.FlowTop) error) error {
			q := v.q
			q.Sort = sort
			return client.FlowTop(ctx, q, emit)
		}, live: func(read func(context.Context, string) (api.FlowTop, error)) top.View {
			return top.RunFlows(&v.model, read, update)
		}})
}

// tops is what a live view shows: of one host or of all, flows or their sums.
type tops[T any] struct {
	view   topcmd.BatchView
	follow func(ctx context.Context, sort string, emit func(T) error) error
	update func(T)
	// live is the view on a terminal.
	live func(read func(ctx context.Context, sort string) (T, error)) top.View
}

// showTops shows what is followed, on the terminal or as lines.
func showTops[T any](ctx context.Context, v *flowTop, s tops[T]) error {
	in, out, live := v.terminal()
	if !live {
		return s.print(ctx, v)
	}
	v.d.Waits.Mute()
	v.d.Stderr = io.Discard // the view has the terminal, and names hosts that are away itself
	stream := &flowStream[T]{follow: s.follow}
	defer stream.end()
	return top.Show(ctx, s.live(stream.next), in, out, v.d.Colour)
}

// print writes the view every interval.
func (s tops[T]) print(ctx context.Context, v *flowTop) error {
	enough, n := errors.New("enough"), 0
	err := s.follow(ctx, v.q.Sort, func(t T) error {
		s.update(t)
		n++
		if err := topcmd.WriteView(v.d.Stdout, &v.out, s.view, n); err != nil {
			return err
		}
		if n == v.count {
			return enough
		}
		return nil
	})
	if errors.Is(err, enough) || ctx.Err() != nil {
		return nil
	}
	if err == nil {
		err = api.ErrEnded
	}
	return err
}

func flowRow(f api.Flow) top.FlowRow {
	return top.FlowRow{Port: seenAt(f), Direction: direction(f), VLAN: vlanShort(f), Protocol: protocolText(f),
		Source: flowEnd(f.Source, f.SourceMAC, f.SourcePort), Destination: flowEnd(f.Destination, f.DestinationMAC,
			f.DestinationPort)}
}

// onlyText returns a filter in words.
func onlyText(f api.FlowFilter) string {
	b, err := json.Marshal(f)
	if err != nil {
		return ""
	}
	return strings.NewReplacer("{", "", "}", "", `"`, "", ":", " ", ",", ", ").Replace(string(b))
}

// flowStream has at most one subscription; it subscribes again when the order changes, or the agent has ended.
type flowStream[T any] struct {
	follow func(ctx context.Context, sort string, emit func(T) error) error

	mu     sync.Mutex
	sort   string
	cancel context.CancelFunc
	tops   chan T
	failed chan error
}

// next waits for the next interval to end.
func (s *flowStream[T]) next(ctx context.Context, sort string) (T, error) {
	var none T
	s.begin(ctx, sort)
	select {
	case t := <-s.tops:
		return t, nil
	case err := <-s.failed:
		s.end()
		return none, err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

func (s *flowStream[T]) begin(ctx context.Context, sort string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancel != nil && s.sort == sort {
		return
	}
	if s.cancel != nil {
		s.cancel()
	}
	var own context.Context
	own, s.cancel = context.WithCancel(ctx)
	s.sort, s.tops, s.failed = sort, make(chan T, 1), make(chan error, 1)
	tops, failed := s.tops, s.failed
	go func() {
		err := s.follow(own, sort, func(t T) error {
			select {
			case <-tops: // nobody received it: the view is paused
			default:
			}
			tops <- t
			return own.Err()
		})
		if err == nil {
			err = api.ErrEnded
		}
		failed <- err
	}()
}

// end ends the subscription.
func (s *flowStream[T]) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancel != nil {
		s.cancel()
		s.cancel = nil
	}
}
