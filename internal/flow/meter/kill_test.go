package meter

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"heddle/internal/flow"
	"heddle/internal/plan"
	"heddle/internal/test/testkit"
)

// victimDir is the environment variable that makes the test binary the agent that is killed.
const victimDir = "HEDDLE_METER_VICTIM"

func TestMain(m *testing.M) {
	if dir := os.Getenv(victimDir); dir != "" {
		if err := victim(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// lastBatch is how many batches there are in all.
const lastBatch = 3000

// batchAt is what the kernel counted before the drain with that number: always the same.
func batchAt(n uint64) flow.Batch {
	r := rand.New(rand.NewPCG(n, 5))
	b := flow.Batch{Number: n}
	ms := instantOf(n).Wall.UnixMilli() - 500
	for _, i := range r.Perm(300)[:1+r.IntN(120)] {
		k := key(uint16(i / 2))
		if i%2 == 1 {
			k, _ = opposite(&k)
		}
		flags := uint16(0x10)
		if r.IntN(20) == 0 {
			flags |= finFlag
		}
		p := 1 + r.Uint64N(9)
		b.Keys = append(b.Keys, k)
		b.Counts = append(b.Counts, flow.Counts{Packets: p, Bytes: p * 100, FrameBytes: p*100 + 14, First: ms, Last: ms,
			TCPFlags: flags})
	}
	return b
}

func instantOf(n uint64) Instant {
	return Instant{Wall: time.UnixMilli(1_700_000_000_000 + int64(n)*1000), Up: 1000*time.Second +
		time.Duration(n)*time.Second}
}

// numbered is a source that stores in a file what was confirmed; the file survives the agent like the kernel's tables.
type numbered struct {
	file  *os.File
	next  uint64
	until uint64
}

func (s *numbered) Drain(add func(flow.Batch) error) error {
	for ; s.next <= s.until; s.next++ {
		b := batchAt(s.next)
		if err := add(b); err != nil {
			return err
		}
		var n [8]byte
		binary.NativeEndian.PutUint64(n[:], s.next)
		if _, err := s.file.WriteAt(n[:], 0); err != nil {
			return err
		}
	}
	return nil
}

func (s *numbered) Points() flow.Points {
	return flow.Points{2: {ID: plan.PortID{Switch: "lab", Name: "vm2"}, Number: 12}}
}
func (s *numbered) Losses() ([]flow.Loss, error) { return nil, nil }

// journal is an exporter that writes what it gets to a file.
type journal struct {
	file *os.File
	err  error
}

func (j *journal) Budget(Instant) int         { return 64 }
func (j *journal) Tick(Instant, func() State) {}

func (j *journal) Export(_ Instant, _ flow.Points, records []flow.Record) {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(records); err != nil {
		j.err = err
		return
	}
	frame := binary.BigEndian.AppendUint32(nil, uint32(b.Len()))
	frame = binary.BigEndian.AppendUint32(frame, crc32.ChecksumIEEE(b.Bytes()))
	_, err := j.file.Write(append(frame, b.Bytes()...))
	j.err = errors.Join(j.err, err)
}

// victim is an agent that folds and exports until it is killed, or all batches are processed.
func victim(dir string) error {
	state, err := os.OpenFile(filepath.Join(dir, "confirmed"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	out, err := os.CreateTemp(dir, "records.*")
	if err != nil {
		return err
	}
	var n [8]byte
	_, _ = state.ReadAt(n[:], 0)
	source := &numbered{file: state, next: binary.NativeEndian.Uint64(n[:]) + 1}
	m, err := New(Options{Dir: dir, Origin: "boot", Source: source, Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		return err
	}
	j := &journal{file: out}
	set := Settings{ActiveTimeout: 10 * time.Second, IdleTimeout: 3 * time.Second, MaxFlows: 120, Biflow: true}
	if err := m.Configure(instantOf(source.next), map[string]Switch{"lab": {Settings: set, Exporter: j}}); err != nil {
		return err
	}
	for source.next <= lastBatch {
		source.until = min(lastBatch, source.next+2)
		if _, err := m.Step(instantOf(source.until)); err != nil {
			return err
		}
	}
	err = m.Stop(context.Background(), func() (Instant, error) { return instantOf(lastBatch + 5), nil })
	return errors.Join(err, j.err)
}

// told is the content of records: the largest totals of each flow, because a repeated record has totals at least as
// large.
type told map[flowName]uint64

type flowName struct {
	key   flow.Key
	start int64
}

func (t told) add(r flow.Record) {
	n := flowName{r.Key, r.Start}
	t[n] = max(t[n], r.Total.Packets)
	if r.Reverse != nil {
		k, _ := opposite(&r.Key)
		n = flowName{k, r.Reverse.Start}
		t[n] = max(t[n], r.Reverse.Total.Packets)
	}
}

// perKey is how many packets were reported.
func (t told) perKey() map[flow.Key]uint64 {
	sum := map[flow.Key]uint64{}
	for n, packets := range t {
		sum[n.key] += packets
	}
	return sum
}

// readJournal reads a file of records, up to the record that its writer was killed at.
func readJournal(t *testing.T, name string, to told) (records int) {
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for len(data) >= 8 {
		n := binary.BigEndian.Uint32(data)
		if uint32(len(data)-8) < n || crc32.ChecksumIEEE(data[8:8+n]) != binary.BigEndian.Uint32(data[4:]) {
			break
		}
		var rs []flow.Record
		if err := gob.NewDecoder(bytes.NewReader(data[8 : 8+n])).Decode(&rs); err != nil {
			t.Fatal(err)
		}
		for _, r := range rs {
			to.add(r)
		}
		records, data = records+len(rs), data[8+n:]
	}
	return records
}

// An agent that is killed at any instant, again and again, leaves nothing unreported and reports nothing twice that
// could not be recognized.
func TestKillsAtAnyInstantLoseAndDoubleNothing(t *testing.T) {
	testkit.Never(t)
	t.Parallel()
	dir := t.TempDir()
	kills := 0
	for try := 0; ; try++ {
		if try == 2000 {
			t.Fatal("the agent does not get through")
		}
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), victimDir+"="+dir)
		var said bytes.Buffer
		cmd.Stderr = &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var timer *time.Timer
		if try < 40 {
			timer = time.AfterFunc(time.Duration(5000+rand.IntN(20_000))*time.Microsecond,
				func() { _ = cmd.Process.Kill() })
		}
		err := cmd.Wait()
		if timer != nil {
			timer.Stop()
		}
		if said.Len() > 0 {
			for line := range bytes.Lines(said.Bytes()) {
				if !bytes.Contains(line, []byte("does not fit into the flow table")) {
					t.Fatalf("the agent said: %s", line)
				}
			}
		}
		if err == nil {
			break
		}
		kills++
	}
	checkTold(t, dir, kills)
}

func checkTold(t *testing.T, dir string, kills int) {
	want := map[flow.Key]uint64{}
	for n := uint64(1); n <= lastBatch; n++ {
		b := batchAt(n)
		for i, k := range b.Keys {
			want[k] += b.Counts[i].Packets
		}
	}
	to, records := told{}, 0
	files, _ := filepath.Glob(filepath.Join(dir, "records.*"))
	for _, f := range files {
		records += readJournal(t, f, to)
	}
	got, wrong := to.perKey(), 0
	for k, packets := range want {
		if got[k] != packets {
			if wrong++; wrong < 5 {
				t.Errorf("port %d, direction %d: %d packets were told of, %d were counted", k.SrcPort, k.Direction,
					got[k], packets)
			}
		}
	}
	t.Logf("%d kills, %d records, %d flows of %d keys, %d keys wrong", kills, records, len(to), len(want), wrong)
	if kills < 20 {
		t.Errorf("only %d kills", kills)
	}
}
