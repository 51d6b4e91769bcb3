package traffic

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// measureFunc is a function like Measure.
type measureFunc func(context.Context, Pair, Load) (Result, error)

// longestInterval is the end of patience with a machine that is busy with something else.
const longestInterval = 10 * time.Second

// measured measures, and again over twice the time while the machine is too busy for it: a session was late for its
// interval, or the result is not enough to check. It returns the last result and its load, which the caller checks all
// the same.
func measured(t *testing.T, measure measureFunc, pair Pair, load Load, enough func(Result, Load) bool) (Result, Load) {
	t.Helper()
	for {
		res, err := measure(t.Context(), pair, load)
		switch again := load.Duration < longestInterval; {
		case err == nil && (enough(res, load) || !again):
			return res, load
		case err != nil && !(late(err) && again):
			t.Fatal(err)
		}
		t.Logf("%s over %v is not enough: %+v, %v", load.Kind, load.Duration, res, err)
		load.Warmup, load.Duration = 2*load.Warmup, 2*load.Duration
	}
}

// late says whether a session was ready only after its interval had begun, or did nothing in it. A process says so in
// words alone.
func late(err error) bool {
	for _, one := range []error{ErrLate, ErrNoTransaction} {
		if errors.Is(err, one) || err != nil && strings.Contains(err.Error(), one.Error()) {
			return true
		}
	}
	return false
}

// carries says whether the interval saw some traffic: with streams so many bytes, else so many transactions or packets.
func carries(bytes, transactions uint64) func(Result, Load) bool {
	return func(r Result, _ Load) bool {
		switch r.Kind {
		case KindStream:
			return r.Stream.Bytes >= bytes
		case KindRR, KindCRR:
			return r.Transactions.Count >= transactions
		}
		// A sink that does not get a CPU for a second is ended before it has read what it has.
		p := r.Sink.Packets
		return p.Received >= transactions && (p.Complete || p.Overflowed >= EndMarks)
	}
}

// untilItsContextEnds is Measure of a load without a duration, which ends with its context.
func untilItsContextEnds(ctx context.Context, p Pair, l Load) (Result, error) {
	ctx, cancel := context.WithTimeout(ctx, l.Duration)
	defer cancel()
	l.Duration = 0
	res, err := Measure(ctx, p, l)
	if err != nil && ctx.Err() != nil { // it ended before the first packet
		err = errors.Join(ErrLate, err)
	}
	return res, err
}
