package dataplane

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
)

// phase is the phase of a generation of tables.
type phase string

const (
	filling phase = "filling" // being made; no device uses it, and a crash makes it useless
	// complete, except for what was learned and counted meanwhile in other tables; devices may use it
	switching phase = "switching"
	complete  phase = "complete" // every device uses it
)

const (
	generationPrefix = "gen-"
	recordPin        = "layout"
	recordSize       = 64 << 10
)

// generation is a directory of pinned tables that belong together. There is one, except during an upgrade to a program
// with another layout, and after a crash in the middle of one.
type generation struct {
	dir    string
	number int
	record *ebpf.Map // pinned description; nil for tables from before descriptions existed
	layout layout
	phase  phase
}

// description is the content of the pinned record, as JSON.
type description struct {
	Phase  phase  `json:"phase"`
	Layout layout `json:"layout"`
}

// readGenerations lists the pinned generations, oldest first. The caller closes them.
func readGenerations(dir string, own layout) ([]*generation, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all []*generation
	for _, e := range entries {
		n, err := strconv.Atoi(strings.TrimPrefix(e.Name(), generationPrefix))
		if !strings.HasPrefix(e.Name(), generationPrefix) || err != nil {
			continue
		}
		g, err := readGeneration(filepath.Join(dir, e.Name()), n)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("read the tables pinned in %s: %w", e.Name(), err),
				closeGenerations(all))
		}
		all = append(all, g)
	}
	slices.SortFunc(all, func(a, b *generation) int { return a.number - b.number })
	if _, err := os.Lstat(filepath.Join(dir, "control")); err == nil {
		g, err := undescribed(dir, own)
		if err != nil {
			return nil, errors.Join(err, closeGenerations(all))
		}
		all = append([]*generation{g}, all...)
	}
	return all, nil
}

// readGeneration reads one generation. One without a description comes from a crash while it was being made, and counts
// as filling.
func readGeneration(dir string, number int) (*generation, error) {
	g := &generation{dir: dir, number: number, phase: filling}
	m, err := ebpf.LoadPinnedMap(filepath.Join(dir, recordPin), nil)
	if errors.Is(err, fs.ErrNotExist) {
		return g, nil
	}
	if err != nil {
		return nil, err
	}
	g.record = m
	var b []byte
	if err := m.Lookup(uint32(0), &b); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	b = bytes.TrimRight(b, "\x00")
	if len(b) == 0 {
		return g, nil
	}
	var d description
	if err := json.Unmarshal(b, &d); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	g.phase, g.layout = d.Phase, d.Layout
	return g, nil
}

// undescribed returns the generation that a program pinned before tables had descriptions: tables of the same size as
// ours have our layout.
func undescribed(dir string, own layout) (*generation, error) {
	g := &generation{dir: dir, phase: complete, layout: layout{Tables: map[string]tableLayout{}}}
	for name, t := range own.Tables {
		m, err := ebpf.LoadPinnedMap(filepath.Join(dir, name), nil)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read pinned table %s: %w", name, err)
		}
		if m.Type() == t.Type && m.KeySize() == t.Key && m.ValueSize() == t.Value {
			t.Entries = m.MaxEntries()
			g.layout.Tables[name] = t
		}
		if err := m.Close(); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// newGeneration makes the directory and pins the description first, so that an incomplete generation can be
// recognised later.
func newGeneration(dir string, number int, l layout) (*generation, error) {
	g := &generation{dir: filepath.Join(dir, generationPrefix+strconv.Itoa(number)), number: number, layout: l}
	if err := os.Mkdir(g.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make a directory for pinned tables: %w", err)
	}
	var err error
	g.record, err = ebpf.NewMap(&ebpf.MapSpec{Name: "heddle_layout", Type: ebpf.Array, KeySize: 4,
		ValueSize: recordSize, MaxEntries: 1})
	if err != nil {
		return nil, fmt.Errorf("describe the tables: %w", err)
	}
	if err := errors.Join(g.setPhase(filling), g.record.Pin(filepath.Join(g.dir, recordPin))); err != nil {
		return nil, errors.Join(fmt.Errorf("describe the tables: %w", err), g.record.Close())
	}
	return g, nil
}

func (g *generation) setPhase(p phase) error {
	b, err := json.Marshal(description{p, g.layout})
	if err != nil {
		return err
	}
	if len(b) > recordSize {
		return fmt.Errorf("the description of the tables takes %d bytes, there is room for %d", len(b), recordSize)
	}
	if err := g.record.Put(uint32(0), append(b, make([]byte, recordSize-len(b))...)); err != nil {
		return fmt.Errorf("note that the tables are %s: %w", p, err)
	}
	g.phase = p
	return nil
}

// remove removes the pins; objects that devices use continue to exist.
func (g *generation) remove() error {
	if g.number > 0 {
		return errors.Join(g.close(), os.RemoveAll(g.dir))
	}
	entries, err := os.ReadDir(g.dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if !e.IsDir() && e.Name() != "control" {
			errs = append(errs, os.Remove(filepath.Join(g.dir, e.Name())))
		}
	}
	return errors.Join(append(errs, os.Remove(filepath.Join(g.dir, "control")))...)
}

func (g *generation) close() error {
	if g == nil || g.record == nil {
		return nil
	}
	return g.record.Close()
}

func closeGenerations(all []*generation) error {
	var errs []error
	for _, g := range all {
		errs = append(errs, g.close())
	}
	return errors.Join(errs...)
}

// choice is what to do with the existing generations.
type choice struct {
	adopt *generation   // use it; nil: make a new one
	from  []*generation // copy the content of these, oldest first
	dead  []*generation // useless
	next  int           // number of the new one
}

// choose decides which generations to use. One that was being filled when the agent died is useless, and so is one
// older than the newest complete one. Generations to which devices were being switched contain MACs that were learned
// since; they are merged with the complete one.
func choose(all []*generation, own layout) choice {
	c := choice{next: 1}
	newest := -1
	for _, g := range all {
		c.next = g.number + 1
		if g.phase == complete {
			newest = g.number
		}
	}
	for _, g := range all {
		if g.phase == filling || g.number < newest {
			c.dead = append(c.dead, g)
		} else {
			c.from = append(c.from, g)
		}
	}
	if len(c.from) == 1 && c.from[0].phase == complete && c.from[0].record != nil && c.from[0].layout.same(own) {
		c.adopt, c.from = c.from[0], nil
	}
	return c
}
