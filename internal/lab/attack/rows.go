package attack

import (
	"encoding/binary"
	"heddle/internal/lab/experiment"
	"slices"

	"heddle/internal/plan"
)

// row is one attack.
type row struct {
	name string
	// frames are the frames that each guest sends in a turn, where turn counts from 0 to turns-1.
	frames func(turn, turns int) map[string][][]byte
	// bridges names the guest that bridges its two adapters meanwhile, "" for none.
	bridges string
	// blocks: one of that guest's ports must be blocked. In other rows no port may be.
	blocks bool
	// spoofs names the guest that poses as the victims, "" for none.
	spoofs string
	// open: nothing protects the others. Their losses are shown, but no budget applies.
	open bool
}

// rows are every link protocol to every kind of address, each in all ways; the guests that fill tables; those that make
// loops; and those that pose as others.
func rows() []row {
	return slices.Concat(linkRows(), starvationRows(), stormRows(), spoofRows())
}

func linkRows() (list []row) {
	for _, p := range protocols() {
		for _, d := range destinations() {
			if d.to != nil && *d.to == p.group {
				continue // a beacon is always a broadcast
			}
			frames := map[string][][]byte{}
			for _, w := range ways() {
				from, to := attackers()[w.vm], p.group
				if d.to != nil {
					to = *d.to
				}
				frames[w.vm] = append(frames[w.vm], slices.Concat(to[:], from[:], w.tag, p.payload(from)))
			}
			list = append(list, row{name: p.name + "-" + d.name, frames: func(int, int) map[string][][]byte {
				return frames
			}})
		}
	}
	return list
}

// starved is how many sources the guest of such a row sends from: more than twice the table of the host.
const starved = 10000

// starvationRows are guests that send from many addresses, to fill the host's table of learned MACs.
func starvationRows() (list []row) {
	for i, vm := range []string{starver, passer, limited} {
		frames := func(turn, turns int) map[string][][]byte {
			each := starved / turns
			out := make([][]byte, each)
			for n := range out {
				from := station(0x10+byte(i), turn*each+n)
				out[n] = slices.Concat([]byte{2, 0, 0, 0, 0x99, 0x99}, from[:], experimental())
			}
			return map[string][][]byte{vm: out}
		}
		list = append(list, row{name: "mac-" + vm, frames: frames})
	}
	return list
}

// stormRows are guests that bridge their two adapters: one broadcast circulates for ever.
func stormRows() (list []row) {
	for _, r := range []row{
		{name: "loop-storm", bridges: looped, blocks: true},
		{name: "loop-storm-limited", bridges: stormy},
		{name: "loop-storm-open", bridges: loose, open: true},
	} {
		from := attackers()[r.bridges]
		frame := slices.Concat(slices.Repeat([]byte{0xff}, 6), from[:], experimental())
		r.frames = func(int, int) map[string][][]byte { return map[string][][]byte{r.bridges: {frame}} }
		list = append(list, r)
	}
	return list
}

// station is the nth address of a series.
func station(series byte, n int) plan.MAC {
	m := plan.MAC{2, 5, series}
	binary.BigEndian.PutUint16(m[4:], uint16(n))
	return m
}

// experimental is the rest of a frame without a protocol: a type for local experiments (IEEE 802), and no content.
func experimental() []byte {
	return append([]byte{0x88, 0xb6}, make([]byte, 46)...)
}

// RowNames are the names of the experiment's rows.
func RowNames() []string { return experiment.RowNames(rows(), func(r row) string { return r.name }) }
