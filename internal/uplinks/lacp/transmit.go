package lacp

import "time"

// speaks reports whether the member may send at all: either side speaks unasked (802.1AX 6.4.13, NO_PERIODIC
// otherwise; S53).
func (m *member) speaks() bool {
	return m.up && (m.actor.has(Activity) || m.partner.State.has(Activity))
}

// period is how often the partner wants to hear us.
func (m *member) period() time.Duration {
	if m.partner.State.has(ShortTimeout) {
		return fastPeriod
	}
	return slowPeriod
}

func (m *member) periodic(now time.Time) {
	if !m.speaks() {
		m.periodAt, m.ntt = time.Time{}, false
		return
	}
	if m.periodAt.IsZero() || !now.Before(m.periodAt) {
		m.ntt = true
		m.periodAt = now.Add(m.period())
	}
	// A partner that now wants to hear us more often does not wait for the end of the longer period.
	m.periodAt = soonest(m.periodAt, now.Add(m.period()))
}

// transmit is the PDU to send now, if one is needed and the rate allows it; otherwise it is sent when it does.
func (m *member) transmit(now time.Time, cfg Config) (PDU, bool) {
	if !m.ntt || !m.sent.allow(now, burst, fastPeriod) {
		return PDU{}, false
	}
	m.ntt = false
	m.count.Out++
	return m.pdu(cfg), true
}

func (m *member) pdu(cfg Config) PDU {
	return PDU{Actor: m.info(cfg), Partner: m.partner}
}

// due is when something happens to the member by itself; zero: never.
func (m *member) due() time.Time {
	at := m.periodAt
	if m.rx == rxExpired || m.rx == rxCurrent {
		at = soonest(at, m.until)
	}
	if m.mux == muxWaiting {
		at = soonest(at, m.waits)
	}
	if m.ntt && len(m.sent.times) > 0 { // held back by the rate
		at = soonest(at, m.sent.times[0].Add(fastPeriod))
	}
	return at
}

// window remembers when the last few frames were let through.
type window struct{ times []time.Time }

// allow lets a frame through unless most were within the last span.
func (w *window) allow(now time.Time, most int, span time.Duration) bool {
	for len(w.times) > 0 && now.Sub(w.times[0]) >= span {
		w.times = w.times[1:]
	}
	if len(w.times) >= most {
		return false
	}
	w.times = append(w.times, now)
	return true
}
