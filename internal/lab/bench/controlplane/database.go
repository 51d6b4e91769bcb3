package controlplane

import (
	"context"
	"time"

	"heddle/internal/lab/report"
)

// TenMinutes is how long the budget of etcd's database speaks of.
const TenMinutes = 10 * time.Minute

// mostSizes is about how often a measurement asks for the size of the database, leastAsking how far apart at least.
const (
	mostSizes   = 20
	leastAsking = time.Second
)

// databaseSize is the size of etcd's database at one time.
type databaseSize struct {
	after       float64 // seconds
	file, inUse int64   // bytes
	revision    int64   // of the definition's store
}

// databaseSizes are those at several times, and why there are no more of them.
type databaseSizes struct {
	sizes []databaseSize
	err   error
}

// watchDatabase asks for the size of the database from time to time, until ctx ends.
func (m *measurement) watchDatabase(ctx context.Context, began time.Time) <-chan databaseSizes {
	out := make(chan databaseSizes, 1)
	go func() {
		var d databaseSizes
		defer func() { out <- d }()
		if !m.Database {
			return
		}
		every := max(leastAsking, m.Connecting/mostSizes)
		for next := began; sleepUntil(ctx, next); next = next.Add(every) {
			status, err := m.process.Status(ctx)
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				d.err = err
				return
			}
			d.sizes = append(d.sizes, databaseSize{after: time.Since(began).Seconds(), file: status.Store.Size,
				inUse: status.Store.InUse, revision: status.Store.Revision})
		}
	}()
	return out
}

// inTenMinutes is how much of the quota is needed after that time. Where ports were connected as long, it is the
// largest file that was seen: etcd holds its quota against that. After less time it is how much would be in use at the
// rate at which that grew, as nothing is compacted meanwhile.
func (c *portLoad) inTenMinutes() float64 {
	if c.long {
		most := c.database
		for _, s := range c.sizes {
			most = max(most, s.file)
		}
		return float64(most)
	}
	grown := float64(c.inUseAfter-c.inUse) / c.seconds
	return float64(c.inUse) + max(0, grown)*TenMinutes.Seconds()
}

// sizeRows are the sizes over time.
func (c *portLoad) sizeRows(hosts int) (rows []report.Row) {
	for _, s := range c.sizes {
		rows = append(rows, report.Row{{Name: "hosts", Value: hosts}, {Name: "work", Value: databaseGrows},
			{Name: "after", Value: s.after, Unit: report.Seconds},
			{Name: "in_use", Title: "in use", Value: float64(s.inUse), Unit: report.Bytes},
			{Name: "file", Title: "its file", Value: float64(s.file), Unit: report.Bytes},
			{Name: "of_quota", Title: "of the quota", Value: 100 * float64(s.file) / float64(c.quota),
				Unit: report.Percent},
			{Name: "revision", Value: int(s.revision), Unit: report.Count}})
	}
	return rows
}
