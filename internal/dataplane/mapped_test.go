package dataplane

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/cilium/ebpf"

	"heddle/internal/test/testkit"
)

// An idle agent maps none of the plan tables, which have 8 MB.
func TestPlanTablesAreMappedOnlyWhileTheyAreWritten(t *testing.T) {
	dir := bpffs(t)
	host, _, d := twoPorts(t)
	before := mappedOfTables(t)
	err := withMACTable(host, dir, d, 0, func(k *Kernel) {
		if _, err := k.Snapshot(); err != nil {
			t.Error(err)
		}
		if grown := mappedOfTables(t) - before; grown > 512<<10 {
			t.Errorf("%d bytes of tables are mapped after a change and a snapshot", grown)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// mappedOfTables returns how many bytes of BPF tables this process maps.
func mappedOfTables(t *testing.T) (sum int64) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if !strings.Contains(line, "bpf-map") {
			continue
		}
		from, to, _ := strings.Cut(strings.Fields(line)[0], "-")
		first, errFirst := strconv.ParseInt(from, 16, 64)
		end, errEnd := strconv.ParseInt(to, 16, 64)
		if errFirst != nil || errEnd != nil {
			t.Fatalf("unreadable mapping %q", line)
		}
		sum += end - first
	}
	return sum
}

func TestATableIsReadAndWrittenAtAnyPlace(t *testing.T) {
	testkit.Root(t)
	const size, n = 24, 1000 // records that cross page boundaries
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: size, MaxEntries: n,
		Flags: memoryMapped})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	want := make([]byte, size*n)
	for i := range want {
		want[i] = byte(i * 7)
	}
	for first := 0; first < n; first += 170 { // in parts, the last one shorter
		if err := writeAt(m, want[first*size:min(first+170, n)*size], int64(first*size)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range uint32(n) {
		var got, mapped [size]byte
		if err := m.Lookup(i, &got); err != nil {
			t.Fatal(err)
		}
		if err := readAt(m, mapped[:], int64(i)*size); err != nil {
			t.Fatal(err)
		}
		if part := want[i*size : (i+1)*size]; !bytes.Equal(got[:], part) || !bytes.Equal(mapped[:], part) {
			t.Fatalf("record %d is %x looked up and %x mapped, want %x", i, got, mapped, part)
		}
	}
	for _, at := range []int64{-size, size * n, size*n - 8} {
		if err := writeAt(m, make([]byte, size), at); err == nil || !strings.Contains(err.Error(), "beyond") {
			t.Errorf("a write at %d: %v", at, err)
		}
	}
}
