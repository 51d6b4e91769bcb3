package api

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func (e *echo) Flows(_ context.Context, q FlowQuery) (*FlowList, error) {
	e.got = q
	return &FlowList{Flows: []Flow{{Port: "vm1", Protocol: "tcp"}}, Total: 7, Kept: 9, Metered: true}, e.err
}

func (e *echo) FlowTop(ctx context.Context, q FlowTopQuery, emit func(FlowTop) error) error {
	e.got = q
	if e.err != nil {
		return e.err
	}
	for n := 1; ; n++ {
		if err := emit(FlowTop{Active: n}); err != nil || ctx.Err() != nil {
			return err
		}
	}
}

func (e *echo) FlowRecords(ctx context.Context, q FlowFilter, emit func(FlowRecords) error) error {
	e.got = q
	if e.err != nil {
		return e.err
	}
	if err := emit(FlowRecords{Records: []FlowRecord{
		{Reason: "idle", Reverse: &FlowReverse{FlowCounts: FlowCounts{Packets: 3}}}}, Missed: 2}); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

func (e *echo) FlowSums(_ context.Context, q FlowSumQuery, emit func(FlowSums) error) error {
	if e.got = q; e.err != nil {
		return e.err
	}
	return emit(FlowSums{By: q.By, Rows: []FlowSum{{Name: "192.0.2.1", Share: 0.5}}})
}

func (e *echo) FlowStatus(context.Context) (*FlowStatus, error) {
	return &FlowStatus{Switches: []FlowSwitch{
		{Switch: "lab", Collectors: []FlowCollector{{Collector: "c:4739", Lost: 3}}}}}, e.err
}

func TestFlowCallsArriveAndComeBack(t *testing.T) {
	ctx, e := t.Context(), &echo{}
	c, _ := serve(t, e)
	q := FlowQuery{FlowFilter: FlowFilter{Port: "vm1", Address: "192.0.2.0/24", L4Port: 443}, Sort: "last", Limit: 3}
	list, err := c.Flows(ctx, q)
	if err != nil || list.Total != 7 || len(list.Flows) != 1 || !cmp.Equal(e.got, any(q)) {
		t.Errorf("%+v %v, asked %+v", list, err, e.got)
	}
	sums, by := []FlowSums(nil), FlowSumQuery{FlowFilter: FlowFilter{Port: "vm1"}, By: ByAddress, Of: SumsOfFlows,
		Sort: "flows", Limit: 3}
	err = c.FlowSums(ctx, by, func(s FlowSums) error { sums = append(sums, s); return nil })
	if len(sums) != 1 || sums[0].By != ByAddress || sums[0].Rows[0].Share != 0.5 || !cmp.Equal(e.got, any(by)) {
		t.Errorf("%+v %v, asked %+v", sums, err, e.got)
	}
	status, err := c.FlowStatus(ctx)
	if err != nil || status.Switches[0].Collectors[0].Lost != 3 {
		t.Errorf("%+v %v", status, err)
	}
}

// A stream ends when the follower has received enough, when its context ends, and when the agent does.
func TestFlowsAreFollowedUntilSomebodyEnds(t *testing.T) {
	e := &echo{}
	c, _ := serve(t, e)
	enough, seen := errors.New("enough"), 0
	top := FlowTopQuery{FlowFilter: FlowFilter{Uplink: "u1"}, Sort: "bits", Limit: 1, Interval: time.Second}
	err := c.FlowTop(t.Context(), top, func(f FlowTop) error {
		if seen++; f.Active != seen {
			t.Errorf("answer %d after %d", f.Active, seen)
		}
		if seen == 3 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) || !cmp.Equal(e.got, any(top)) {
		t.Errorf("%v, asked %+v", err, e.got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = c.FlowRecords(ctx, FlowFilter{Direction: "egress"}, func(r FlowRecords) error {
		if r.Missed != 2 || r.Records[0].Reverse.Packets != 3 {
			t.Errorf("%+v", r)
		}
		cancel()
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// An error in a request is returned, as for every call.
func TestAFollowerIsToldWhatIsWrong(t *testing.T) {
	c, _ := serve(t, &echo{err: NewError(Invalid, "no such direction")})
	var e *Error
	err := c.FlowRecords(t.Context(), FlowFilter{}, func(FlowRecords) error { t.Error("an answer"); return nil })
	if !errors.As(err, &e) || e.Kind != Invalid || e.Lines[0] != "no such direction" {
		t.Errorf("%v", err)
	}
}
