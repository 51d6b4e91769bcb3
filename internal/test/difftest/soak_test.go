package difftest

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"
)

// TestSoak is `make soak`: random cases for the duration in HEDDLE_SOAK. HEDDLE_SEED is the first seed; without it the
// time decides. Mismatches are kept as regression cases, and the soak continues after them, up to a number.
func TestSoak(t *testing.T) {
	text := os.Getenv("HEDDLE_SOAK")
	if text == "" {
		t.Skip("runs with HEDDLE_SOAK=duration: make soak DURATION=…")
	}
	length, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("HEDDLE_SOAK: %v", err)
	}
	s := &soak{t: t, seed: uint64(time.Now().UnixNano()), start: time.Now()}
	if tty, err := os.OpenFile("/dev/tty", os.O_WRONLY, 0); err == nil {
		// go test puts a pipe in place of standard output
		s.terminal = tty
		defer tty.Close()
	}
	if text := os.Getenv("HEDDLE_SEED"); text != "" {
		if s.seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("HEDDLE_SEED: %v", err)
		}
	}
	fmt.Printf("soak: kernel program against model for %v, from seed %d\n", length, s.seed)
	s.run(&Bench{Want: Reference(), Got: kernel(t)}, length)
	s.show(os.Stdout, "\n")
	if s.mismatches > 0 {
		t.Errorf("%d mismatches", s.mismatches)
	}
}

// enough is the number of mismatches after which a soak ends: more of them tell nothing new.
const enough = 10

type soak struct {
	t                         *testing.T
	seed                      uint64
	start, shown              time.Time
	terminal                  *os.File // nil without one
	frames, cases, mismatches int
}

func (s *soak) run(b *Bench, length time.Duration) {
	for time.Since(s.start) < length && s.mismatches < enough {
		n, err := b.One(s.seed)
		s.frames += n
		s.cases++
		s.seed++
		s.note(err)
		s.progress()
	}
}

func (s *soak) note(err error) {
	var f *Failure
	switch {
	case err == nil:
	case errors.As(err, &f):
		s.mismatches++
		path, saveErr := f.Keep(failures)
		fmt.Printf("\n%v\nwritten to internal/test/difftest/%s: once it is fixed, move the file to %s\n", f, path,
			regressions)
		if saveErr != nil {
			s.t.Error(saveErr)
		}
	default:
		s.t.Fatal(err)
	}
}

// progress shows a line that is written over on a terminal, and one a minute elsewhere.
func (s *soak) progress() {
	to, pause, end := os.Stdout, time.Minute, "\n"
	if s.terminal != nil {
		to, pause, end = s.terminal, time.Second, "\r"
	}
	if time.Since(s.shown) >= pause {
		s.show(to, end)
		s.shown = time.Now()
	}
}

func (s *soak) show(to *os.File, end string) {
	spent := time.Since(s.start)
	fmt.Fprintf(to, "soak: %8v  %10d frames  %8.0f frames/s  %7d cases  %d mismatches%s",
		spent.Round(time.Second), s.frames, float64(s.frames)/spent.Seconds(), s.cases, s.mismatches, end)
}
