package events

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"heddle/internal/cli"
	"heddle/internal/host/ownfile"
)

// eventCursor is how far the events of each host were printed, in a file that another run goes on from.
type eventCursor struct {
	path string

	mu      sync.Mutex
	hosts   map[string]lastPrinted
	changed bool
}

// lastPrinted is the last event of a host that was printed.
type lastPrinted struct {
	// Started is when the host's agent started, whose events Seq counts.
	Started time.Time `json:"started"`
	Seq     uint64    `json:"seq"`
}

// cursorFile is the form of the file.
type cursorFile struct {
	Version int                    `json:"version"`
	Hosts   map[string]lastPrinted `json:"hosts"`
}

// readCursor reads the file at path, which need not be there yet; nil for "".
func readCursor(path string) (*eventCursor, error) {
	if path == "" {
		return nil, nil
	}
	c := &eventCursor{path: path, hosts: map[string]lastPrinted{}}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return nil, err
	}
	file := cursorFile{}
	if err := json.Unmarshal(b, &file); err != nil || file.Version != 1 || file.Hosts == nil {
		return nil, cli.Usagef("--resume %s: this file was not written by heddle events: name another one, or "+
			"remove it", path)
	}
	c.hosts = file.Hosts
	return c, nil
}

// of is how far a host's events were printed.
func (c *eventCursor) of(host string) lastPrinted {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hosts[host]
}

// put takes in that an event was printed.
func (c *eventCursor) put(host string, p lastPrinted) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if had := c.hosts[host]; had.Started.Equal(p.Started) && had.Seq >= p.Seq {
		return
	}
	c.hosts[host], c.changed = p, true
}

// save writes the file if something was printed since. Without a file there is nothing to save.
func (c *eventCursor) save() error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.changed {
		return nil
	}
	b, err := json.Marshal(cursorFile{Version: 1, Hosts: c.hosts})
	if err == nil {
		err = ownfile.Replace(c.path, append(b, '\n'))
	}
	if err != nil {
		return fmt.Errorf("how far events were printed could not be saved: %w", err)
	}
	c.changed = false
	return nil
}
