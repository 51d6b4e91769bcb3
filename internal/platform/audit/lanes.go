package audit

import (
	"fmt"
	"os"
	"slices"
	"sync"
)

const (
	// laneCount is how many callers who make many changes have files of their own at a time.
	laneCount = 8
	// laneFiles is how many files each has at most.
	laneFiles = 2
	// laneName is what the first is called; the others have a number behind it.
	laneName = "frequent"
)

// lanes are the series for the changes of callers who have used up their part of the room for changes. A caller has one
// alone: however much one does, what another did stays. Where there are more callers, the one who wrote longest ago
// gives theirs up.
type lanes struct {
	mu   sync.Mutex
	list []*lane
	turn int64
}

type lane struct {
	*series
	of   caller
	last int64 // the turn, or the number of the entry, when the caller was given it last; 0 for a free one
}

// laneNames are the names of the series, in order.
func laneNames() (names []string) {
	for i := range laneCount {
		name := laneName
		if i > 0 {
			name += fmt.Sprint(i + 1)
		}
		names = append(names, name)
	}
	return names
}

func newLanes(dir string, b Bounds) *lanes {
	l := &lanes{}
	most := max(1, b.File*int64(b.Frequent)/(laneCount*laneFiles))
	for _, name := range laneNames() {
		l.list = append(l.list, &lane{series: newSeries(dir, name, most, laneFiles)})
	}
	return l
}

// learn finds out whose the files are that there are.
func (l *lanes) learn() error {
	for _, one := range l.list {
		paths, err := one.paths()
		if err != nil {
			return err
		}
		for _, p := range slices.Backward(paths) {
			if _, err := read(p, func(e Entry) {
				if one.last = max(one.last, e.Number); e.Result == Begun {
					one.of, _ = callerOf(&e)
				}
			}); err != nil && !os.IsNotExist(err) {
				return err
			}
			if one.of != (caller{}) {
				break
			}
		}
		l.turn = max(l.turn, one.last)
	}
	return nil
}

// seriesOf is the series of a caller.
func (l *lanes) seriesOf(c caller) *series {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn++
	i := slices.IndexFunc(l.list, func(one *lane) bool { return one.of == c })
	if i < 0 {
		i = 0
		for n, one := range l.list {
			if one.last < l.list[i].last {
				i = n
			}
		}
	}
	l.list[i].of, l.list[i].last = c, l.turn
	return l.list[i].series
}

// all are the series.
func (l *lanes) all() (list []*series) {
	for _, one := range l.list {
		list = append(list, one.series)
	}
	return list
}
