package dataplane

import (
	"os"
	"path/filepath"
	"testing"
)

// Pins that somebody removed while the agent runs are restored, so that the switch outlives the process.
func TestPinsRemovedByOthersArePutBack(t *testing.T) {
	dir := bpffs(t)
	host, guests, d := twoPorts(t)
	var k *Kernel
	if err := host.Do(func() (err error) {
		if k, err = Open(Options{PinDir: dir}); err != nil {
			return err
		}
		return k.Apply(d)
	}); err != nil {
		t.Fatal(err)
	}
	if n, err := k.Repin(); n != 0 || err != nil {
		t.Errorf("with every pin there: %d, %v", n, err)
	}
	if err := os.RemoveAll(filepath.Join(dir, linkDir)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "gen-1", "macs")); err != nil {
		t.Fatal(err)
	}
	if n, err := k.Repin(); n != 3 || err != nil {
		t.Errorf("put back %d, %v; want two attachments and a table", n, err)
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := guests[0].ns.Output("ping", "-c", "2", "-i", "0.05", "-W", "1", guests[1].addr); err != nil {
		t.Error(err)
	}
	if err := host.Do(func() (err error) {
		if k, err = Open(Options{PinDir: dir}); err != nil {
			return err
		}
		return k.Apply(d)
	}); err != nil {
		t.Fatal(err)
	}
	if len(k.links.byIndex) != 2 {
		t.Errorf("%d attachments adopted", len(k.links.byIndex))
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Remove(dir, nil); err != nil {
		t.Fatal(err)
	}
}
