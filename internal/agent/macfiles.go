package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"google.golang.org/protobuf/proto"

	hostv1 "heddle/api/heddle/host/v1"
	"heddle/internal/agent/bundle"
	"heddle/internal/agent/state"
	"heddle/internal/host/ownfile"
	"heddle/internal/observe"
	"heddle/internal/plan"
)

// macFiles are files beside the state with the learned MACs that came with ports and wait for their guests. A port may
// have a hundred thousand, and the state is written often.
type macFiles struct{ dir string }

const macFilePrefix = "macs-"

func (f macFiles) path(id plan.PortID) string {
	sum := sha256.Sum256([]byte(id.Switch + "\x00" + id.Name))
	return filepath.Join(f.dir, macFilePrefix+hex.EncodeToString(sum[:16]))
}

// put writes a port's MACs, at most most; without any there is no file.
func (f macFiles) put(id plan.PortID, b *hostv1.PortBundle, most int) error {
	if most == 0 {
		f.remove(id)
		return nil
	}
	text, err := proto.Marshal(&hostv1.PortBundle{Macs: b.GetMacs(), Idle: b.GetIdle()})
	if err != nil {
		return err
	}
	return ownfile.Replace(f.path(id), text)
}

// macs reads a port's MACs, at most most.
func (f macFiles) macs(id plan.PortID, most int) ([]observe.MACEntry, error) {
	text, err := ownfile.Read(f.path(id))
	if err != nil {
		return nil, err
	}
	b := &hostv1.PortBundle{}
	if err := proto.Unmarshal(text, b); err != nil {
		return nil, err
	}
	return bundle.MACsOf(b.GetMacs(), b.GetIdle(), most), nil
}

// remove deletes a port's file. One that is left over is tidied up at the next start.
func (f macFiles) remove(id plan.PortID) { _ = os.Remove(f.path(id)) }

// tidy removes the files of ports that expect none.
func (f macFiles) tidy(list []state.Goods) error {
	wanted := map[string]bool{}
	for i := range list {
		if list[i].MACs > 0 {
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
