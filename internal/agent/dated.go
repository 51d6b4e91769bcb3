package agent

import (
	"context"
	"errors"
	"maps"
	"os"
	"sync"
	"time"

	"heddle/internal/agent/instance"
	"heddle/internal/agent/state"
	"heddle/internal/api"
	"heddle/internal/binding"
	"heddle/internal/diagnose/advise"
	"heddle/internal/host/ownfile"
	"heddle/internal/observe/recent"
	"heddle/internal/observe/sightings"
	"heddle/internal/plan"
)

const (
	// sightEvery is how often the counters are read to date their growth: a finding's date is late by at most that
	// time. Reading a thousand ports takes some 10 ms.
	sightEvery = time.Minute
	// keepSightingsEvery bounds how often the dates are written to disk, and so how much of them is lost when the agent
	// is killed.
	keepSightingsEvery = time.Minute
)

// dated keeps when counters grew and since when ports have had no device, so that findings have dates. The dates are in
// a file in the run directory: like the counters they outlive the agent, but not the boot.
type dated struct {
	*shared
	teaming *teaming

	ledger *sightings.Ledger
	recent recent.Counts // of the frames that ports have sent
	file   string        // "" keeps none
	place  string
	kept   time.Time     // when the file was written last
	causes advise.Causes // of the present plan
	of     *binding.Desired
	links  advise.Links  // at the previous reading
	due    chan struct{} // holds a value when the counters are to be read soon
	// reading is held from reading the counters until they are dated; never in the loop.
	reading sync.Mutex
}

// openSightings reads the dates that the previous agent kept.
func (a *Agent) openSightings(p instance.Paths) {
	da := a.dated
	da.file, da.place = p.Sightings(a.name), a.state.Place
	b, err := ownfile.Read(da.file)
	if err == nil {
		da.ledger, err = sightings.Decode(b, da.place)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		a.log.Warn("when findings were seen before is not known", "err", err)
	}
}

// followSightings starts the goroutine that reads the counters until the agent ends.
func (a *Agent) followSightings() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.answers.keepSighting(ctx)
	}()
	a.closers = append(a.closers, func() error {
		cancel()
		<-done
		return a.dated.keep()
	})
}

// keepSighting reads the counters at each interval until ctx ends.
func (an *answers) keepSighting(ctx context.Context) {
	// The first is half an interval late: the devices are read anew every minute, and both at once would take the
	// memory of both.
	next := time.NewTimer(sightEvery + sightEvery/2)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-an.Stopped():
			return
		case <-an.dated.due:
		case <-next.C:
			next.Reset(sightEvery)
		}
		_ = an.sight(ctx, uplinksOnly, &advise.Snapshot{}) // whoever asks is told; the next reading may succeed
	}
}

// sight reads the counters and dates them. Readings are dated in the order in which they were made: an older one would
// look like counters that began anew.
func (an *answers) sight(ctx context.Context, devices func(*state.Held) bool, s *advise.Snapshot) (err error) {
	an.dated.reading.Lock()
	defer an.dated.reading.Unlock()
	if s.Flows, err = an.flowing.FlowStatus(ctx); err != nil {
		return err
	}
	if s.Stats, err = an.read(ctx, devices); err != nil {
		return err
	}
	var write []byte
	err = an.Do(ctx, func() (err error) {
		an.reporter.refused.Settle(time.Now(), s.Stats)
		write, err = an.dated.note(s.Stats, s.Flows)
		return err
	})
	if err != nil || write == nil {
		return err
	}
	// A slow disk delays nothing but the next reading, and a full disk does not refuse an answer.
	if failed := ownfile.Replace(an.dated.file, write); failed != nil {
		return an.Do(ctx, func() error {
			an.Complain("remember when findings were seen", failed)
			return nil
		})
	}
	return nil
}

func everyDevice(*state.Held) bool { return true }

func uplinksOnly(h *state.Held) bool { return h.Uplink }

// soon asks for a reading of the counters soon: what they have counted so far belongs to settings that have just
// changed.
func (da *dated) soon() {
	select {
	case da.due <- struct{}{}:
	default:
	}
}

// note dates, in the loop, the values that were just read, and returns the content to write to disk, nil if nothing
// changed.
func (da *dated) note(stats []api.Stats, flows *api.FlowStatus) ([]byte, error) {
	d := da.Active().Applied
	if d == nil {
		return nil, nil
	}
	var before advise.Causes
	if links := da.lost(d.Plan); da.of != d || !maps.Equal(da.links, links) {
		before = da.causes
		da.of, da.links, da.causes = d, links, advise.CausesOf(d.Plan, d.Facts, links)
	}
	da.recent.Note(time.Now(), received(stats))
	da.ledger.Note(time.Now(), advise.Readings(before, da.causes, stats, flows))
	if time.Since(da.kept) < keepSightingsEvery {
		return nil, nil
	}
	return da.encoded()
}

// lost returns how often each uplink of the plan has lost its link.
func (da *dated) lost(p *plan.Plan) advise.Links {
	links := advise.Links{}
	for _, sw := range p.Switches {
		for _, u := range sw.Uplinks {
			links[u.ID] = da.teaming.links.Lost(u.ID)
		}
	}
	return links
}

// watch records, in the loop, which ports and uplinks have a device.
func (da *dated) watch() {
	has, now := map[plan.PortID]bool{}, da.Active()
	for _, id := range now.Members() {
		_, has[id] = now.Applied.Facts[id]
	}
	da.ledger.Watch(time.Now(), has)
}

// encoded returns the content to write to disk, nil if nothing changed.
func (da *dated) encoded() ([]byte, error) {
	if da.file == "" || !da.ledger.Changed() {
		return nil, nil
	}
	da.kept = time.Now()
	return da.ledger.Encode(da.place)
}

// keep writes unsaved dates to disk; it is called after the loop has ended.
func (da *dated) keep() error {
	b, err := da.encoded()
	if err != nil || b == nil {
		return err
	}
	return ownfile.Replace(da.file, b)
}
