package hostdev

import "testing"

func TestK39_ACarrierIsReadBesideTheNotifications(t *testing.T) {
	host, vm := guest(t)
	h := openIn(t, host)
	d, found, err := h.Device("port0")
	if err != nil || !found {
		t.Fatalf("port0 not found: %v", err)
	}
	notes := make(chan Note, 1)
	var w *carrierWatch // its own goroutine watches nothing
	if err := host.Do(func() (err error) { w, err = newCarrierWatch(notes, nil); return err }); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.close(); err != nil {
			t.Error(err)
		}
	}()
	up := map[uint32]bool{}
	look := func(what string, want bool) {
		t.Helper()
		if !w.look(d.Index, up) {
			t.Fatal("it ended")
		}
		if len(notes) == 1 != want {
			t.Fatalf("%s: %d notes", what, len(notes))
		}
	}
	look("first sight", false)
	look("nothing happened", false)
	run(t, vm, "ip link set eth0 down")
	look("the carrier is lost", true)
	if changed, err := h.Apply(<-notes); err != nil || !changed {
		t.Errorf("the note changed %v, %v", changed, err)
	}
	if d, _, err := h.Device("port0"); err != nil || d.Carrier || d.CarrierDowns == 0 {
		t.Errorf("device %+v, %v", d, err)
	}
	run(t, vm, "ip link set eth0 up")
	look("it is back", true)
	<-notes
	run(t, host, "ip link del port0")
	look("the device is gone", true)
	if n := <-notes; n.At().IsZero() {
		t.Error("a note without time")
	}
	look("it stays gone", false)
}
