package flowing

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

	"heddle/internal/meter/export"
	"heddle/internal/ownfile"
)

// lost is what the collectors of a switch were not sent. It is in a file beside the flow tables, so that collectors are told of it also when the
// agent is killed before they are back.
type lost struct {
	file string
	of   map[export.Collector]export.Loss
}

// lostOf is what one collector was not sent, as the file has it.
type lostOf struct {
	export.Collector
	export.Loss
}

// readLost reads what the exporter before had written down. Whatever the error is, what it returns can be used.
func readLost(dir, sw string) (lost, error) {
	l := lost{filepath.Join(dir, "lost."+url.PathEscape(sw)+".json"), map[export.Collector]export.Loss{}}
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
		x.Transport = cmp.Or(x.Transport, export.UDP) // agents before there were others did not say
		l.of[x.Collector] = x.Loss
	}
	return l, nil
}

// note writes down what has changed. Collectors that the configuration has no longer are remembered, up to a bound.
func (l *lost) note(all []export.Status) error {
	next := maps.Clone(l.of)
	for _, s := range all {
		s.Collector.Transport = cmp.Or(s.Collector.Transport, export.UDP)
		lost := s.Lost
		lost.Add(s.Held) // is lost if the agent is killed now
		if _, known := next[s.Collector]; known || lost != (export.Loss{}) {
			next[s.Collector] = lost
		}
	}
	if maps.Equal(next, l.of) {
		return nil
	}
	for c := range next {
		if len(next) > mostPast && !slices.ContainsFunc(all, func(s export.Status) bool { return s.Collector == c }) {
			delete(next, c)
		}
	}
	l.of = next
	return l.write()
}

// write replaces the file as a whole. It need not survive the host.
func (l *lost) write() error {
	list := []lostOf{}
	for c, loss := range l.of {
		list = append(list, lostOf{c, loss})
	}
	b, err := json.Marshal(list)
	if err != nil {
		return err
	}
	return ownfile.Replace(l.file, b)
}
