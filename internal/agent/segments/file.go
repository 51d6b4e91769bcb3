package segments

import (
	"errors"
	"path/filepath"

	"google.golang.org/protobuf/proto"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/host/ownfile"
	"heddle/internal/overlay/span"
	"heddle/internal/overlay/wire"
)

const fileName = "segments"

func (k *Keeper) path() string { return filepath.Join(k.Dir, fileName) }

// Save writes what is known to disk, if that is another than the file has.
func (k *Keeper) Save() error {
	k.mu.Lock()
	if !k.stale {
		k.mu.Unlock()
		return nil
	}
	all := &controllerv1.FollowSegmentsResponse{}
	for _, vni := range k.known.Segments() {
		all.Updates = append(all.Updates, wire.Update(k.known.All(vni)))
	}
	k.stale = false
	k.mu.Unlock()
	text, err := proto.Marshal(all)
	if err == nil {
		err = ownfile.Replace(k.path(), text)
	}
	if err != nil {
		k.mu.Lock()
		k.stale = true
		k.mu.Unlock()
	}
	return err
}

// read reads the file. What is not whole in it is left out.
func (k *Keeper) read() error {
	text, err := ownfile.Read(k.path())
	if err != nil {
		return err
	}
	all := &controllerv1.FollowSegmentsResponse{}
	if err := proto.Unmarshal(text, all); err != nil {
		return err
	}
	for _, one := range all.GetUpdates() {
		u, errUpdate := wire.ReadUpdate(one)
		if errUpdate == nil && u.Whole && k.known.Apply(u) {
			continue
		}
		err = errors.Join(err, errUpdate)
		k.known.Forget(span.VNI(one.GetVni()))
	}
	return err
}

// Forget forgets everything, as the host has left its cluster.
func (k *Keeper) Forget() error {
	k.mu.Lock()
	for _, vni := range k.known.Segments() {
		k.touch(&span.Update{VNI: vni, Gone: true})
		k.known.Forget(vni)
	}
	k.mu.Unlock()
	k.Options.Changed()
	return ownfile.Remove(k.path())
}
