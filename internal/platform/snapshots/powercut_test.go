package snapshots

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"heddle/internal/host/ownfile"
	"heddle/internal/test/testkit/powercut"
)

// content is what the database of a snapshot has: more than a page, so that a part of it could be there.
func content(name string) string { return fmt.Sprintf("%20000s", filepath.Base(name)) }

// source writes into files as a store does.
func source() Source {
	return Source{
		Database: func(_ context.Context, file string) (int64, error) {
			text := content(file)
			return int64(len(text)), ownfile.Stream(file, func(w io.Writer) error {
				_, err := io.WriteString(w, text)
				return err
			})
		},
		Size:   func(context.Context) (int64, error) { return 1 << 20, nil },
		Backup: func(context.Context) ([]byte, error) { return []byte("switches: []\n"), nil },
	}
}

// keeperIn is a keeper of one snapshot, in a directory whose parents nobody has made.
func keeperIn(dir string, now time.Time) *Keeper {
	return &Keeper{Schedule: Schedule{Dir: filepath.Join(dir, "backup", "snapshots"), Every: time.Hour, Keep: 1},
		Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now },
		Room: func(string) (int64, int64, error) { return 1 << 40, 1 << 40, nil }}
}

// taking has a keeper take the snapshot that is due.
func taking(dir string, now time.Time) error {
	k := keeperIn(dir, now)
	k.turn(context.Background(), source())
	if s := k.State(); s.Problem != "" {
		return errors.New(s.Problem)
	}
	return nil
}

// left are the newest snapshot, and whether each that is there is whole.
func left(dir string) (string, error) {
	k := keeperIn(dir, noon)
	k.sweep()
	taken, err := k.taken()
	if errors.Is(err, os.ErrNotExist) {
		return "none", nil
	}
	for _, at := range taken {
		name := filepath.Join(k.Dir, nameOf(at))
		text, errText := os.ReadFile(name + Database)
		if errText == nil && string(text) != content(name+Database) {
			errText = fmt.Errorf("%s has %d bytes and is not whole", name, len(text))
		}
		_, errBackup := os.Stat(name + Backup)
		err = errors.Join(err, errText, errBackup)
	}
	if len(taken) == 0 {
		return "none", err
	}
	return nameOf(taken[0]), err
}

// walked are the changes that are cut off.
func walked() []powercut.Change {
	return []powercut.Change{{Name: "the first", Left: left}, {Name: "the next in place of the first", Left: left,
		Tidies: true}}
}

// The child takes a snapshot when it is told to, and says whether that was acknowledged.
func TestPowerCutChild(t *testing.T) {
	powercut.Child(t, func(name, dir string) (func() error, error) {
		err := ownfile.MakeDir(dir, 0o700)
		if err == nil && name != walked()[0].Name {
			err = taking(dir, noon)
		}
		return func() error { return taking(dir, noon.Add(2*time.Hour)) }, err
	})
}

// Whatever step of a snapshot the power is taken at, each snapshot that is there is whole, and the newest of those that
// were said to be taken is there: the one before goes when the next is on the disk.
func TestS114_ASnapshotThatWasTakenIsThereAfterALossOfPower(t *testing.T) {
	disk := powercut.NewDisk(t)
	for _, c := range slices.Clone(walked()) {
		t.Run(c.Name, func(t *testing.T) { disk.Walk(t, "TestPowerCutChild", c) })
	}
}
