package difftest

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"heddle/internal/model"
)

// StepsPerCase is the length of a random case.
const StepsPerCase = 400

// shrinkFor bounds the time spent on making a failing case small.
const shrinkFor = 20 * time.Second

// Failure is a mismatch with the case that shows it, made small.
type Failure struct {
	Seed uint64
	Mismatch
	Case *Case
}

func (f *Failure) Error() string {
	return fmt.Sprintf("seed %d: after step %d of %d:\n%s", f.Seed, f.Step, len(f.Case.Steps), f.What)
}

// Report sums up a run.
type Report struct {
	Cases  int
	Frames int
}

// Run plays random cases from a seed on, each with the next seed, until at least n frames were compared, or until the
// two subjects disagree: then the error is a *Failure with a shrunk case. Other errors are a subject's.
func Run(seed uint64, subject, want Subject, n int) (Report, error) {
	b := &Bench{Want: want, Got: subject}
	var r Report
	for r.Frames < n {
		frames, err := b.One(seed)
		r.Frames += frames
		if err != nil {
			return r, err
		}
		r.Cases++
		seed++
	}
	return r, nil
}

// One plays the random case of a seed. The error is a *Failure where the subjects disagree.
func (b *Bench) One(seed uint64) (frames int, _ error) {
	c := Generate(seed, StepsPerCase)
	frames, m, err := b.Play(c)
	if err != nil {
		return frames, fmt.Errorf("seed %d: %w", seed, err)
	}
	if m == nil {
		return frames, nil
	}
	f := &Failure{Seed: seed, Mismatch: *m, Case: c}
	if m.Step < 0 || !b.fails(c) { // it does not happen again: keep it whole
		return frames, f
	}
	f.Case = Shrink(c, m, shrinkFor, b.fails)
	if _, m, err := b.Play(f.Case); err == nil && m != nil {
		f.Mismatch = *m
	}
	return frames, f
}

// Hunt plays random cases from a seed on until the first mismatch, which is returned as it is, or until n frames were
// compared.
func (b *Bench) Hunt(seed uint64, n int) (frames int, _ *Mismatch, _ error) {
	for frames < n {
		more, m, err := b.Play(Generate(seed, StepsPerCase))
		frames += more
		if m != nil || err != nil {
			return frames, m, err
		}
		seed++
	}
	return frames, nil, nil
}

func (b *Bench) fails(c *Case) bool {
	_, m, err := b.Play(c)
	return err == nil && m != nil
}

// Keep writes a failure's case into a directory and returns the file's path.
func (f *Failure) Keep(dir string) (string, error) {
	f.Case.Note = f.Error()
	path := filepath.Join(dir, fmt.Sprintf("seed-%d.yaml", f.Seed))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	return path, f.Case.Save(path)
}

// Reference is the model as it should be.
func Reference() Subject { return NewModel(model.New) }
