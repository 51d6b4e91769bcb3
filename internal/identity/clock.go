package identity

import (
	"crypto/x509"
	"runtime/debug"
	"time"
)

// Backdate is how long before its making a certificate begins to count, for clocks that are behind.
const Backdate = 24 * time.Hour

// Clock is a host's time, which may be wrong: a board without a battery says 1970 after every loss of power.
type Clock struct {
	Now func() time.Time
	// Floor is a time that has passed for certain, such as that of the program's build. A clock that shows an earlier
	// one is wrong.
	Floor time.Time
	// made is when the newest of the certificates that are known was made, by the clock of the controller that made it,
	// which may have been wrong as well.
	made time.Time
}

// NewClock is a clock that has passed the build of this program, and probably the making of the certificates given.
func NewClock(now func() time.Time, made ...*x509.Certificate) Clock {
	c := Clock{Now: now, Floor: buildTime()}
	for _, cert := range made {
		if cert != nil {
			c.made = later(c.made, MadeAt(cert))
		}
	}
	return c
}

// Time is what the clock says, or the floor, or the making of the newest certificate, where it says less.
func (c Clock) Time() time.Time { return later(later(c.Now(), c.Floor), c.made) }

// Wrong reports whether the clock shows a time that has passed for certain.
func (c Clock) Wrong() bool { return c.Now().Before(c.Floor) }

// For is the time at which a controller's certificate is checked. Where the clock, which may be right, shows a time at
// which the certificate counts, it is that time: this host's own certificate, made later than that, was made by a
// controller whose clock was ahead. A certificate that begins later than this host's clock shows that the clock is
// behind, and counts from its beginning.
func (c Clock) For(leaf *x509.Certificate) time.Time {
	if now := c.Now(); !c.Wrong() && !now.Before(leaf.NotBefore) && !now.After(leaf.NotAfter) {
		return now
	}
	return later(c.Time(), leaf.NotBefore)
}

// MadeAt is when a certificate of a host or a controller was made.
func MadeAt(c *x509.Certificate) time.Time { return c.NotBefore.Add(Backdate) }

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// buildTime is when the commit was made that this program is built from, and never earlier than this file.
func buildTime() time.Time {
	written := time.Date(2026, time.November, 1, 0, 0, 0, 0, time.UTC)
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return written
	}
	for _, s := range info.Settings {
		if t, err := time.Parse(time.RFC3339, s.Value); s.Key == "vcs.time" && err == nil {
			return later(written, t)
		}
	}
	return written
}
