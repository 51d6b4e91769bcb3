package metering

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"path/filepath"
	"slices"

	"heddle/internal/flow/export"
	"heddle/internal/host/ownfile"
)

// lost is what the collectors of a switch were not sent. It is stored in a file beside the flow tables, so that
// collectors get the numbers even if the agent is killed before they are back.
type lost struct {
	file string
	of   map[export.Collector]export.Loss
	// counted is since when losses are counted, for every collector there was an export to.
	counted map[export.Collector]export.Span
}

// lostOf is the loss of one collector, in the file's form.
type lostOf struct {
	export.Collector
	export.Loss
	export.Span
}

// readLost reads what the previous exporter had stored. What it returns can be used even if there is an error.
func readLost(dir, sw string) (lost, error) {
	l := lost{filepath.Join(dir, "lost."+url.PathEscape(sw)+".json"), map[export.Collector]export.Loss{},
		map[export.Collector]export.Span{}}
	b, err := ownfile.Read(l.file)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	var all []lostOf
	if err == nil {
		err = json.Unmarshal(b, &all)
	}
	if err != nil {
		return l, fmt.Errorf("read %s: %w", l.file, err)
	}
	for _, x := range all {
		x.Transport = cmp.Or(x.Transport, export.UDP) // older agents, which only knew UDP, did not write it
		l.of[x.Collector] = x.Loss
		l.counted[x.Collector] = x.Span
	}
	return l, nil
}

// note stores what has changed. Collectors that are no longer in the configuration are remembered, up to a bound.
func (l *lost) note(all []export.Status) error {
	next, counted := maps.Clone(l.of), maps.Clone(l.counted)
	for _, s := range all {
		s.Collector.Transport = cmp.Or(s.Collector.Transport, export.UDP)
		counted[s.Collector] = s.Counted
		lost := s.Lost
		lost.Add(s.Held) // it is lost if the agent is killed now
		if _, known := next[s.Collector]; known || lost != (export.Loss{}) {
			next[s.Collector] = lost
		}
	}
	if maps.Equal(next, l.of) && maps.Equal(counted, l.counted) {
		return nil
	}
	for c := range counted {
		if len(counted) > mostPast && !slices.ContainsFunc(all, func(s export.Status) bool {
			return s.Collector == c
		}) {
			delete(next, c)
			delete(counted, c)
		}
	}
	l.of, l.counted = next, counted
	return l.write()
}

// write replaces the whole file. It need not survive the host.
func (l *lost) write() error {
	list := []lostOf{}
	for c, span := range l.counted {
		list = append(list, lostOf{c, l.of[c], span})
	}
	b, err := json.Marshal(list)
	if err != nil {
		return err
	}
	return ownfile.Replace(l.file, b)
}
