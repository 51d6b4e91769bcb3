package lacp

import "time"

// speaks reports whether the member may send at all: it may if either side is active, that is, sends unasked (802.1AX
// 6.4.13, otherwise NO_PERIODIC; S53).
func (m *member) speaks() bool {
	return m.up && (m.actor.has(Activity) || m.partner.State.has(Activity))
}

// period returns how often the partner wants PDUs.
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
	// A partner that now wants PDUs more often does not have to wait for the end of the longer period.
	m.periodAt = soonest(m.periodAt, now.Add(m.period()))
}

// transmit returns the PDU to send now, if one is needed and the rate allows it; otherwise it is sent once the rate
// allows it.
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

// due returns when the member must act by itself; zero: never.
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

// window remembers the times of the last few frames that were allowed.
type window struct{ times []time.Time }

// allow allows a frame unless there were most frames within the last span.
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
