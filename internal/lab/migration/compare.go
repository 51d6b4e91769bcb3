package migration

import (
	"context"
	"time"
)

// compareTime is how long what the guest has sent and got and what its port shows may take to be the same: what is on
// the way arrives, and agents read counters now and then.
const compareTime = 5 * time.Second

// classNames are the ends of the names of counters, by class.
func classNames() [3]string {
	return [...]string{unicast: "Unicast", multicast: "Multicast", broadcast: "Broadcast"}
}

// compare compares the port's counters with what the valve has counted since the row began. Nothing may be on its way.
func (q *series) compare(ctx context.Context) error {
	return q.m.compare(ctx, q.counted, func() (map[string]uint64, error) { return q.site.shown(ctx, q.at) })
}

// compare reads both sides until they are the same, for a while.
func (m *measured) compare(ctx context.Context, counted, showing func() (map[string]uint64, error)) error {
	for deadline := time.Now().Add(compareTime); ; {
		want, err := counted()
		if err != nil {
			return err
		}
		shown, err := showing()
		if err != nil {
			return err
		}
		m.has, m.before, m.after, m.differ = shown != nil, want, shown, differ(want, shown)
		if m.differ == 0 || shown == nil || time.Now().After(deadline) {
			return nil
		}
		if err := pause(ctx, 10*lookEvery); err != nil {
			return err
		}
	}
}

// counted are the counters as they should be, by name: what the guest has sent while it ran, and what was delivered to
// its devices, whether it ran or not.
func (q *series) counted() (map[string]uint64, error) {
	out, err := q.s.own.read()
	if err != nil {
		return nil, err
	}
	out = out.minus(q.own)
	var in counts
	for _, t := range q.delivers {
		c, err := t.read()
		if err != nil {
			return nil, err
		}
		for i := range in {
			in[i] += c[i]
		}
	}
	return q.net.numbered(named(out, in)), nil
}

// numberedBytes is how many bytes more than it has a frame counts that goes to a tunnel without a tag inside.
const numberedBytes = 4

// numbered are the counters as they should be where the uplink is a tunnel. The guest's frames have no tags.
func (n network) numbered(all map[string]uint64) map[string]uint64 {
	if n.head > 0 {
		for _, class := range classNames() {
			all["bytesOutToPnic"] += numberedBytes * all["packetsIn"+class]
		}
	}
	return all
}

// named gives what the guest has sent and got the names of the port's 18 counters (S80). All that reaches the guest
// comes by an uplink, all that it sends leaves by one, and nothing is dropped; what was refused because the guest was
// not there is left out by what shows the port's counters. Frames to all nodes that the guest gets are left out: they
// are the queries of S50, which come from the host itself.
func named(out, in counts) map[string]uint64 {
	all := map[string]uint64{"packetsInDropped": 0, "packetsOutDropped": 0, "packetsInException": 0,
		"packetsOutException": 0}
	for class, name := range classNames() {
		all["packetsIn"+name], all["bytesIn"+name] = out[classFrames+class], out[classBytes+class]
		all["packetsOut"+name], all["bytesOut"+name] = in[classFrames+class], in[classBytes+class]
		all["bytesOutToPnic"] += out[classBytes+class]
		all["bytesInFromPnic"] += in[classBytes+class]
	}
	all["packetsInMulticast"] += out[classFrames+allNodes]
	all["bytesInMulticast"] += out[classBytes+allNodes]
	all["bytesOutToPnic"] += out[classBytes+allNodes]
	return all
}

// differ adds up by how much the counters differ.
func differ(want, shown map[string]uint64) (sum uint64) {
	for name := range want {
		a, b := want[name], shown[name]
		sum += max(a, b) - min(a, b)
	}
	return sum
}
