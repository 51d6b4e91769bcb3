package rollout

import "time"

// Watch is what the driver of a rollout has seen of the hosts lately. It is not safe for several goroutines.
type Watch struct {
	// usual is how hosts were before the first stage; nil while that is not known.
	usual map[string]Usual
	// samples are the newest, and at least window old the oldest; since is when they began.
	samples []sample
	window  time.Duration
	// calm is as of Compare, of the last time that rates were compared.
	calm *Calm
}

type sample struct {
	at    time.Time
	hosts map[string]Vitals
}

// Bounds of the time over which rates are compared.
const (
	leastWindow = 500 * time.Millisecond
	mostWindow  = 30 * time.Second
)

// NewWatch watches hosts for stages that are as long as wait. usual is how they were before; nil where that is to be
// found out. calm is as of Compare.
func NewWatch(wait time.Duration, usual map[string]Usual, calm *Calm) *Watch {
	return &Watch{usual: usual, calm: calm, window: max(leastWindow, min(wait/2, mostWindow))}
}

// Every is how often the hosts are to be looked at.
func (w *Watch) Every() time.Duration { return w.window / 3 }

// Window is over how much time hosts are compared at least.
func (w *Watch) Window() time.Duration { return w.window }

// Full is from when on what hosts counted is enough to compare rates; the zero time where they were not looked at yet.
func (w *Watch) Full() time.Time {
	if len(w.samples) == 0 {
		return time.Time{}
	}
	return w.samples[0].at.Add(w.window)
}

// Anew forgets what was seen: hosts have changed since.
func (w *Watch) Anew() { w.samples = nil }

// Add takes in what hosts counted at a time.
func (w *Watch) Add(at time.Time, hosts map[string]Vitals) {
	w.samples = append(w.samples, sample{at, hosts})
	if w.usual == nil {
		if n := len(w.samples); n > 2 { // the first and the last say what is usual
			w.samples = append(w.samples[:1], w.samples[n-1])
		}
		return
	}
	for len(w.samples) > 2 && at.Sub(w.samples[1].at) >= w.window {
		w.samples = w.samples[1:]
	}
}

// Silent are the hosts that did not say at the last look what they have counted, one of them with why; 0 for none.
func (w *Watch) Silent() (n int, one Finding) {
	if len(w.samples) == 0 {
		return 0, one
	}
	for name, v := range w.samples[len(w.samples)-1].hosts {
		if v.Silent == "" {
			continue
		}
		if n++; one.Host == "" || name < one.Host {
			one = Finding{name, v.Silent}
		}
	}
	return n, one
}

// Unheard are those of the hosts that did not say at the last look what they have counted, though they can.
func (w *Watch) Unheard(names []string) (list []string) {
	if len(w.samples) == 0 {
		return names
	}
	last := w.samples[len(w.samples)-1].hosts
	for _, name := range names {
		if v, ok := last[name]; !ok || v.Silent != "" && !v.Mute {
			list = append(list, name)
		}
	}
	return list
}

// span are the hosts at the first and the last look.
func (w *Watch) span(names []string) (list []Watched) {
	if len(w.samples) == 0 {
		return nil
	}
	first, last := w.samples[0].hosts, w.samples[len(w.samples)-1].hosts
	for _, name := range names {
		if now, ok := last[name]; ok {
			list = append(list, Watched{name, first[name], now})
		}
	}
	return list
}

// Usual is how these hosts are, once they were watched for that long.
func (w *Watch) Usual(names []string, watched time.Duration) (map[string]Usual, bool) {
	if n := len(w.samples); n < 2 || w.samples[n-1].at.Sub(w.samples[0].at) < watched {
		return nil, false
	}
	return UsualOf(w.span(names)), true
}

// Knows takes in how hosts are usually.
func (w *Watch) Knows(usual map[string]Usual) { w.usual, w.samples = usual, nil }

// Found compares hosts that have the change with the others. looked is false while too little was seen for rates.
func (w *Watch) Found(changed, others []string) (found []Finding, looked bool) {
	if w.usual == nil || len(w.samples) == 0 {
		return nil, false
	}
	n := len(w.samples)
	looked = w.samples[n-1].at.Sub(w.samples[0].at) >= w.window
	found, calm := Compare(w.rated(changed, looked), w.rated(others, looked), w.usual, w.calm)
	if looked {
		w.calm = calm
	}
	return found, looked
}

// Calm is as of Compare; nil where rates were never compared.
func (w *Watch) Calm() *Calm { return w.calm }

// rated are the hosts; without what they counted where too little was seen.
func (w *Watch) rated(names []string, looked bool) []Watched {
	list := w.span(names)
	for i := range list {
		list[i].After.Known = list[i].After.Known && looked
	}
	return list
}
