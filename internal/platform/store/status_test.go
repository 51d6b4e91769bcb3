package store

import "testing"

// Who looks how the store is writes nothing: all members would write it to their logs, also those whose disks are full.
func TestStatusWritesNothing(t *testing.T) {
	s := openNew(t)
	write(t, s, put(KindHost, "a", `1`, New))
	index := func() uint64 {
		resp, err := s.client.Status(patient(t), "")
		if err != nil {
			t.Fatal(err)
		}
		return resp.RaftIndex
	}
	const times = 50
	before := index()
	for range times {
		if _, err := s.Status(patient(t)); err != nil {
			t.Fatal(err)
		}
	}
	if n := index() - before; n >= times/2 { // etcd writes something by itself now and then
		t.Errorf("%d looks have made %d entries of the log", times, n)
	}
}
