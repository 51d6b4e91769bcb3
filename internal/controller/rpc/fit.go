package rpc

import (
	"maps"
	"slices"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/fanout"
	"heddle/internal/slice"
	"heddle/internal/slice/fields"
)

// A host is handed what its agent knows. What it does not know is left out, and named: in the answer to who defines it,
// and for as long as it is so in the list of hosts.

// fitter finds what agents of one version can have. The caller holds the fleet's lock.
type fitter struct {
	knows *fields.Set
	fits  map[slice.Hash]fit // by the hash of what the definition gives
}

// fit is a slice that fits, and what is not in it.
type fit struct {
	set   *slice.Set
	lacks []fields.Lack
}

// Bounds of what is remembered: of contents by a fitter, of fitters, and of what one host says that it knows, in bytes.
const (
	mostFits    = 512
	mostFitters = 64
	mostText    = 64 << 10
)

// fitterOf is the fitter for agents that know these fields; those of one version share it. The caller holds the lock.
func (f *fleet) fitterOf(text string) *fitter {
	if text == "" || len(text) > mostText {
		text = fields.First().Text()
	}
	t := f.fitters[text]
	if t == nil {
		f.forgetFitters()
		t = &fitter{knows: fields.Parse(text), fits: map[slice.Hash]fit{}}
		f.fitters[text] = t
	}
	return t
}

// forgetFitters forgets those that no host needs any more, where there are many. The caller holds the lock.
func (f *fleet) forgetFitters() {
	if len(f.fitters) < mostFitters {
		return
	}
	used := map[*fitter]bool{}
	for _, h := range f.hosts {
		used[h.fitter] = true
	}
	maps.DeleteFunc(f.fitters, func(_ string, t *fitter) bool { return !used[t] })
}

// fit is what of a slice fits; nil is for a host that has not said what it knows.
func (t *fitter) fit(set *slice.Set) fit {
	if t == nil {
		return fit{set: set}
	}
	if got, ok := t.fits[set.Hash()]; ok {
		return got
	}
	if len(t.fits) >= mostFits {
		clear(t.fits)
	}
	var got fit
	got.set, got.lacks = t.knows.Fit(set)
	t.fits[set.Hash()] = got
	return got
}

// fitOwn is what fits of what is one host's alone; it is not remembered.
func (t *fitter) fitOwn(own *slice.Set) fit {
	if t == nil || own.Len() == 0 {
		return fit{set: own}
	}
	set, lacks := t.knows.Fit(own)
	return fit{set, lacks}
}

// unknownTo says which fields of the definition a host does not know, a line each.
func unknownTo(h *host, lacks []fields.Lack) (lines []string) {
	for _, l := range lacks {
		what := "is not active: "
		if l.Field == "" {
			what = "(an object of a kind of its own) is not there: "
		}
		lines = append(lines, l.String()+" "+what+"the agent ("+h.agent+") does not know it; update the host")
	}
	return lines
}

// problems are why a host that has the newest version is not simply up.
func (h *host) problems() []string {
	return slices.Concat(h.without, unknownTo(h, h.lacks), h.report.GetWarnings())
}

// whatTheyKnow completes an answer about hosts to another controller with what their agents know, each list once, and
// with what they went back from.
func (f *fleet) whatTheyKnow(out *controllerv1.GetHostsHereResponse) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := map[*fitter]int32{}
	for _, here := range out.GetHosts() {
		h := f.hosts[here.GetHost().GetId()]
		if h == nil || h.conn == nil || h.fitter == nil {
			continue
		}
		if at[h.fitter] == 0 {
			out.Known = append(out.Known, h.fitter.knows.Text())
			at[h.fitter] = int32(len(out.Known))
		}
		here.Known, here.Reverted = at[h.fitter], h.reverted
	}
}

// hear takes in what other controllers know of the hosts that are connected to them.
func (f *fleet) hear(e *fanout.Answers) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, text := range e.Known {
		if h := f.hosts[id]; h != nil && h.conn == nil {
			f.fits(h, text)
		}
	}
}

// fits takes in what a host's agent says that it knows. The caller holds the lock.
func (f *fleet) fits(h *host, text string) {
	if t := f.fitterOf(text); t != h.fitter {
		h.fitter, h.part, h.of = t, nil, nil
	}
}
