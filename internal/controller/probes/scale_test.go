package probes

import (
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/fabric"
	"heddle/internal/fabric/wire"
	"heddle/internal/test/testkit"
)

const (
	manyHosts = 1000
	manyVLANs = 50
	mostHeap  = 768 << 20 // bytes, of all that a hub has of them
)

// A thousand hosts with two uplinks and 50 VLANs: a host probes few others, a VLAN that one uplink lacks is one finding
// among 250,000 results, and the hub's memory is bounded.
func TestS109_AThousandHostsOfFiftyVLANs(t *testing.T) {
	testkit.Weigh(t, 2)
	now := time.Unix(1e9, 0)
	h := New(Options{Log: slog.New(slog.DiscardHandler), Secret: []byte("secret"),
		Now: func() time.Time { return now }})
	before := heap()
	for i := range manyHosts {
		f := &follower{host: Host{fmt.Sprintf("id-%04d", i), fmt.Sprintf("esx%d", i)}, end: func(error) {},
			wake: make(chan struct{}, 1)}
		h.arrive(f)
		h.take(f, &controllerv1.FollowProbesRequest{Uplinks: manyUplinks(i)})
	}
	h.look()
	now = now.Add(settle)
	paths, most := 0, 0
	for _, f := range h.followers {
		tasks := h.layout.Tasks(f.host.ID)
		paths, most = paths+len(tasks), max(most, len(tasks))
		h.take(f, &controllerv1.FollowProbesRequest{Results: wire.Results(resultsOf(tasks), nil)})
	}
	began := time.Now()
	h.look()
	took := time.Since(began)
	used := heap() - before
	v, n := h.Verdict()
	t.Logf("%d hosts, %d paths, at most %d of a host: looked at within %v, %d MB", n, paths, most, took, used>>20)
	if want := 2*2*manyVLANs + manyVLANs; most > want || n != manyHosts || v.Paths != paths {
		t.Errorf("%d of %d hosts, %d of %d paths, at most %d of a host, want %d", n, manyHosts, v.Paths, paths, most,
			want)
	}
	if len(v.Findings) != 1 || v.Findings[0].Code != fabric.VLANMissing ||
		!strings.HasPrefix(v.Findings[0].Text, "VLAN 17 does not pass between esx500/uplink2 and ") {
		t.Errorf("found %+v", v.Findings)
	}
	if used > mostHeap {
		t.Errorf("the hub has %d MB", used>>20)
	}
	runtime.KeepAlive(h)
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func manyUplinks(host int) *controllerv1.ProbeUplinks {
	var list []fabric.Member
	for k := range 2 {
		m := fabric.Member{End: fabric.End{Switch: "prod", Uplink: fmt.Sprintf("uplink%d", k+1)}, MTU: 1500,
			MAC: [6]byte{2, byte(k), 0, 0, byte(host >> 8), byte(host)}}
		for v := range uint16(manyVLANs) {
			m.VLANs = append(m.VLANs, v+1)
		}
		list = append(list, m)
	}
	return wire.Uplinks(list)
}

// resultsOf is what is found where everything passes but VLAN 17 at one uplink.
func resultsOf(tasks []fabric.Task) (list []fabric.Result) {
	lacks := func(e fabric.End) bool { return e.Host == "id-0500" && e.Uplink == "uplink2" }
	for _, task := range tasks {
		r := fabric.Result{Path: task.Path, State: fabric.Passes, Full: fabric.Passes, Delay: time.Millisecond}
		if task.VLAN == 17 && (lacks(task.From) || lacks(task.To)) {
			r.State, r.Full = fabric.Lost, fabric.Unknown
		}
		list = append(list, r)
	}
	return list
}
