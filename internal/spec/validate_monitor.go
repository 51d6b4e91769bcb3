package spec

import (
	"path/filepath"
	"strings"
	"unicode"
)

// What a monitor's names may be.
const (
	maxSocketPath = 107 // bytes, what a unix socket's address holds beside its final zero
	maxNICName    = 63  // bytes
)

// monitor checks what p says about its guest's monitor.
func (v *validator) monitor(a at, p *Port) {
	m := a.field("monitor")
	if p.ActualRole() == Host {
		v.fault(m, "", "only a vnic has this: a host port's interface is the host's own")
		return
	}
	switch s := p.Monitor.Socket; {
	case s == "":
		v.fault(m.field("socket"), "", "the path of the monitor's socket is needed")
	case !filepath.IsAbs(s):
		v.fault(m.field("socket"), shown(s), "a path that begins with / is needed")
	case len(s) > maxSocketPath:
		v.fault(m.field("socket"), shown(s), "the path of a unix socket has at most %d bytes, this one has %d",
			maxSocketPath, len(s))
	case strings.ContainsFunc(s, unicode.IsControl):
		v.fault(m.field("socket"), shown(s), "a path without control characters is needed")
	}
	if n := p.Monitor.NIC; len(n) > maxNICName || strings.ContainsFunc(n, unicode.IsControl) {
		v.fault(m.field("nic"), shown(n), "an adapter's id has at most %d bytes, and no control characters", maxNICName)
	}
	if p.MAC == "" && !v.written(a, "mac") {
		v.fault(a.field("mac"), "", "a port with a monitor needs the MAC its adapter was given: without it, a change "+
			"could not be recognised")
	}
}
