package portstate

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"google.golang.org/protobuf/proto"

	hostv1 "heddle/api/heddle/host/v1"
	"heddle/internal/agent/state"
	"heddle/internal/host/ownfile"
	"heddle/internal/plan"
)

// macFiles are files beside the state with the learned MACs, and what parts have, that came with ports and wait for
// their guests. A port may have a hundred thousand, and the state is written often.
type macFiles struct{ dir string }

const macFilePrefix = "macs-"

func (f macFiles) path(id plan.PortID) string {
	sum := sha256.Sum256([]byte(id.Switch + "\x00" + id.Name))
	return filepath.Join(f.dir, macFilePrefix+hex.EncodeToString(sum[:16]))
}

// write writes MACs, and what parts have, to a file that is no port's yet, and returns its path.
func (f macFiles) write(b *hostv1.PortBundle) (path string, err error) {
	text, err := proto.Marshal(&hostv1.PortBundle{Macs: b.GetMacs(), Idle: b.GetIdle(), Parts: b.GetParts()})
	if err != nil {
		return "", err
	}
	path = f.unnamed()
	return path, ownfile.Replace(path, text)
}

// put makes a file that was written that of a port; "" for a port with nothing in it, which has none.
func (f macFiles) put(id plan.PortID, written string) error {
	if written == "" {
		f.remove(id)
		return nil
	}
	return os.Rename(written, f.path(id))
}

// Unpacked is what a port had where it comes from, made ready beside the loop.
type Unpacked struct {
	Came *Goods
	file string // with its MACs and what parts have; "" without any, and once it is the port's
}

// take makes the file that of a port, by put.
func (u *Unpacked) take(put func(file string) error) error {
	if err := put(u.file); err != nil {
		return err
	}
	u.file = ""
	return nil
}

// Discard removes the file of what is not kept.
func (u *Unpacked) Discard() {
	if u != nil && u.file != "" {
		_ = os.Remove(u.file) // or it is tidied up at the next start
	}
}

// take makes a port's file that of no port, so that a later one does not meet its reader, and returns its path.
func (f macFiles) take(id plan.PortID) (path string, err error) {
	path = f.unnamed()
	return path, os.Rename(f.path(id), path)
}

// unnamed is the path of a file that is no port's.
func (f macFiles) unnamed() string {
	id := make([]byte, 16)
	_, _ = rand.Read(id) // never fails
	return filepath.Join(f.dir, macFilePrefix+"new-"+hex.EncodeToString(id))
}

// read reads MACs, at most most, and what parts have from a file, and removes it.
func (f macFiles) read(path string, most int) (Read, error) {
	defer func() { _ = os.Remove(path) }() // or it is tidied up at the next start
	return readFile(path, most)
}

// readFile reads MACs, at most most, and what parts have from a file.
func readFile(path string, most int) (r Read, err error) {
	text, err := ownfile.Read(path)
	if err != nil {
		return r, err
	}
	b := &hostv1.PortBundle{}
	if err := proto.Unmarshal(text, b); err != nil {
		return r, err
	}
	r.MACs = MACsOf(b.GetMacs(), b.GetIdle(), most)
	r.Parts, _ = partsOf(b.GetParts())
	return r, nil
}

// remove deletes a port's file. One that is left over is tidied up at the next start.
func (f macFiles) remove(id plan.PortID) { _ = os.Remove(f.path(id)) }

// tidy removes the files of ports that expect none.
func (f macFiles) tidy(list []state.Goods) error {
	wanted := map[string]bool{}
	for i := range list {
		if list[i].MACs > 0 || len(list[i].Parts) > 0 {
			wanted[f.path(list[i].ID)] = true
		}
	}
	entries, err := os.ReadDir(f.dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if path := filepath.Join(f.dir, e.Name()); strings.HasPrefix(e.Name(), macFilePrefix) && !wanted[path] {
			err = errors.Join(err, os.Remove(path))
		}
	}
	return err
}
