package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// quietly is how long a run that is not at a terminal says nothing at most.
const quietly = 30 * time.Second

// progress shows how far a run is: on a terminal by a line that is written anew each second, elsewhere by a line when
// nothing was said for half a minute. It also notes the machine's load.
type progress struct {
	out      io.Writer
	terminal bool

	mu      sync.Mutex
	stage   string
	of      int
	done    int
	passed  int
	running map[string]time.Time
	began   time.Time
	spoke   time.Time
	shown   bool // the line at the end of the screen is ours
	loads   []float64
	most    string // what ran when the load was highest
	over    chan struct{}
}

func newProgress(out io.Writer, terminal bool) *progress {
	p := &progress{out: out, terminal: terminal, running: map[string]time.Time{}, began: time.Now(), spoke: time.Now(),
		over: make(chan struct{})}
	go p.watch()
	return p
}

// watch shows the line, and reads the load, until the end.
func (p *progress) watch() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-p.over:
			return
		case <-tick.C:
			p.mu.Lock()
			if p.stage == "testing" {
				p.noteLoad()
			}
			if p.terminal || time.Since(p.spoke) >= quietly {
				p.show()
			}
			p.mu.Unlock()
		}
	}
}

// noteLoad reads the load of the last minute. The caller holds the lock.
func (p *progress) noteLoad() {
	load := loadNow()
	if len(p.loads) == 0 || load > slices.Max(p.loads) {
		p.most = p.names()
	}
	p.loads = append(p.loads, load)
}

// loadNow is the machine's load of the last minute.
func loadNow() float64 {
	text, _ := os.ReadFile("/proc/loadavg") // without it: 0
	first, _, _ := strings.Cut(string(text), " ")
	load, _ := strconv.ParseFloat(first, 64)
	return load
}

// names are the packages that run now, those first that run longest. The caller holds the lock.
func (p *progress) names() string {
	names := make([]string, 0, len(p.running))
	for name := range p.running {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return p.running[a].Compare(p.running[b]) })
	for i, name := range names {
		_, names[i], _ = strings.Cut(name, "/")
	}
	return strings.Join(names, ", ")
}

// show writes the line. The caller holds the lock.
func (p *progress) show() {
	if p.stage == "" {
		return
	}
	line := fmt.Sprintf("%s: %d of %d packages, %s", p.stage, p.done, p.of, minutes(time.Since(p.began)))
	if p.stage == "testing" {
		line += fmt.Sprintf(", %d tests passed", p.passed)
	}
	if names := p.names(); names != "" {
		line += "; " + names
	}
	if p.terminal {
		if r := []rune(line); len(r) > 99 {
			line = string(r[:98]) + "…"
		}
		fmt.Fprintf(p.out, "\r\x1b[K%s", line)
		p.shown = true
		return
	}
	p.spoke = time.Now()
	fmt.Fprintln(p.out, line)
}

// Write passes what the report says on, above the line.
func (p *progress) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		fmt.Fprint(p.out, "\r\x1b[K")
		p.shown = false
	}
	p.spoke = time.Now()
	return p.out.Write(b)
}

func (p *progress) say(text string) { fmt.Fprint(p, text) }

// building begins to show how many test programs are built.
func (p *progress) building(of int) *progress {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stage, p.of, p.done = "building", of, 0
	return p
}

// built counts one.
func (p *progress) built() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
}

// testing begins to show the run of so many test programs; stop ends it.
func (p *progress) testing(of int) (stop func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stage, p.of, p.done, p.began = "testing", of, 0, time.Now()
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.shown {
			fmt.Fprint(p.out, "\r\x1b[K")
		}
		p.stage, p.shown = "", false
	}
}

func (p *progress) took() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Since(p.began)
}

// starts and ends note which packages run.
func (p *progress) starts(pkg string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running[pkg] = time.Now()
}

func (p *progress) ends(pkg string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.running, pkg)
	p.done = min(p.done+1, p.of)
}

// event counts tests that pass.
func (p *progress) event(e event) {
	if e.Action != "pass" || e.Test == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.passed++
}

// load says what the machine's load was while tests ran.
func (p *progress) load() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.loads) == 0 {
		return ""
	}
	sorted := slices.Sorted(slices.Values(p.loads))
	return fmt.Sprintf("load: %.1f in the middle, %.1f at most, when these ran: %s", sorted[len(sorted)/2],
		sorted[len(sorted)-1], p.most)
}

// end stops showing.
func (p *progress) end() { close(p.over) }
