package memory

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestRest_SparesAtRestOnly(t *testing.T) {
	const mb = 1 << 20
	r := rest{heapUse{allocated: 100 * mb}, false}
	for _, c := range []struct {
		name             string
		allocated, spare uint64
		want             bool
	}{
		{"at rest, with little", 101 * mb, 2 * mb, false},
		{"at rest, with much", 102 * mb, 20 * mb, true},
		{"at work", 150 * mb, 20 * mb, false},
		{"at work still", 190 * mb, 20 * mb, false},
		{"at rest after work, whatever there is", 191 * mb, 0, true},
		{"at rest still", 192 * mb, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := r.toSpare(heapUse{c.allocated, c.spare}); got != c.want {
				t.Errorf("to spare: %v", got)
			}
		})
	}
}

// What a burst of work took is given back to the machine, although nothing is allocated afterwards.
func TestSpareHeap_AfterABurst(t *testing.T) {
	const burst = 64 << 20
	const usual = 100
	defer debug.SetGCPercent(debug.SetGCPercent(usual))
	parts := make([][]byte, 64)
	for i := range parts {
		parts[i] = make([]byte, burst/len(parts))
	}
	var with, now runtime.MemStats
	runtime.ReadMemStats(&with)
	runtime.KeepAlive(parts)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var asked atomic.Int64
	pages := func() error { asked.Add(1); return errors.New("none") }
	var ended sync.WaitGroup
	ended.Go(func() { release(ctx, 10*time.Millisecond, pages, slog.New(slog.DiscardHandler)) })
	held := func(m *runtime.MemStats) uint64 { return m.HeapSys - m.HeapReleased }
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		runtime.ReadMemStats(&now)
		if held(&now)+burst/2 < held(&with) && asked.Load() > 0 && growth() == restingGrowth {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the heap holds %d bytes of memory, and held %d during the burst; it grows by %d %%", held(&now),
				held(&with), growth())
		}
	}
	stop()
	ended.Wait()
	if got := growth(); got != usual {
		t.Errorf("afterwards the heap grows by %d %% before it is collected", got)
	}
}

// growth is by how many percent the heap grows before garbage is collected.
func growth() uint64 {
	read := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(read)
	return read[0].Value.Uint64()
}

// The program goes on after its own pages were let go of, and fewer of them are mapped.
func TestSparePages_LeavesTheProgramWhole(t *testing.T) {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	mapped := func() (sum int) {
		smaps, err := os.ReadFile("/proc/self/smaps")
		if err != nil {
			t.Fatal(err)
		}
		parts := regexp.MustCompile(`(?m)^[0-9a-f]+-[0-9a-f]+ r-.p .* ` + regexp.QuoteMeta(self) +
			`\n(?:\w+: .*\n)*?Rss: +(\d+) kB`)
		for _, m := range parts.FindAllSubmatch(smaps, -1) {
			kB, err := strconv.Atoi(string(m[1]))
			if err != nil {
				t.Fatal(err)
			}
			sum += kB
		}
		return sum
	}
	mapped() // so that its own code is mapped before
	before := mapped()
	if err := releasePages(); err != nil {
		t.Fatal(err)
	}
	if after := mapped(); before == 0 || after >= before {
		t.Errorf("%d kB of the program are mapped, and %d kB were", after, before)
	}
	runtime.GC() // walks all of the heap with the program's tables
}

func TestUntouched_LeavesWhatSomebodyHasWritten(t *testing.T) {
	const smaps = `00400000-00500000 r-xp 00000000 fe:00 11                           /usr/bin/heddle
Size:               1024 kB
Rss:                 900 kB
Anonymous:             0 kB
00500000-00600000 r--p 00100000 fe:00 11                           /usr/bin/heddle
Anonymous:             4 kB
00600000-00700000 r--p 00200000 fe:00 11                           /usr/bin/heddle
Anonymous:             0 kB
00700000-00800000 rw-p 00300000 fe:00 11                           /usr/bin/heddle
Anonymous:             0 kB
7f0000000000-7f0000100000 r-xp 00000000 fe:00 12                   /usr/lib/libc.so.6
Anonymous:             0 kB
7f0000200000-7f0000300000 r--p 00000000 00:00 0
Anonymous:             0 kB
`
	want := []mapping{{0x400000, 0x100000}, {0x600000, 0x100000}}
	if got := untouched([]byte(smaps), "/usr/bin/heddle"); !slices.Equal(got, want) {
		t.Errorf("%x, want %x", got, want)
	}
}
