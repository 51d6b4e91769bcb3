package peers

import (
	"context"
	"errors"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
)

// A controller that does not answer in the time for it is not asked for a while. One of which only the caller's time
// is over, which the caller chose, or whose caller went away, is asked by the next caller.
func TestS199_ACallersTimeSaysNothingOfOtherControllers(t *testing.T) {
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	short, end := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
	defer end()
	soon, over := context.WithTimeout(context.Background(), time.Hour)
	defer over()
	for _, row := range []struct {
		name   string
		caller context.Context
		within time.Duration
		says   bool // the other controller says that the time is over, before it is over here
		down   bool
	}{
		{"no answer in the time for it", context.Background(), time.Millisecond, false, true},
		{"its own time is over", context.Background(), time.Hour, true, true},
		{"the caller's time is over", short, time.Hour, false, false},
		{"the caller's time is over there", soon, 2 * time.Hour, true, false},
		{"the caller went away", gone, time.Hour, false, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			r, c := &Roster{}, Controller{ID: "c2", Address: "192.0.2.1:7411"}
			r.links.dial = func(Controller) (*Link, error) { return &Link{Address: c.Address}, nil }
			got := AskThese(row.caller, r, []Controller{c}, row.within, func(ctx context.Context, _ *Link) (int,
				error) {
				if row.says {
					return 0, connect.NewError(connect.CodeDeadlineExceeded, "over")
				}
				<-ctx.Done()
				code := connect.CodeDeadlineExceeded
				if errors.Is(ctx.Err(), context.Canceled) {
					code = connect.CodeCanceled
				}
				return 0, connect.NewError(code, ctx.Err().Error())
			})
			if len(got) != 1 || got[0].Err == nil {
				t.Fatalf("%+v", got)
			}
			if _, err := r.LinkTo(c); (err != nil) != row.down {
				t.Errorf("whether it is asked again: %v", err)
			}
		})
	}
}
