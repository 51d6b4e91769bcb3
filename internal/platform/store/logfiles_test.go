package store

import (
	"os"
	"testing"
)

// The head of the log says what etcd itself says, while it runs and afterwards, also of a log of several files.
func TestInspectReadsWhatTheStoreIsOf(t *testing.T) {
	o := Options{Dir: t.TempDir()}
	if Begun(o.Dir) {
		t.Error("an empty directory has a log")
	}
	s := open(t, o)
	want := EtcdOf(s)
	if got, err := Inspect(o.Dir); err != nil || got != want || got.Member == "" || got.Cluster == "" {
		t.Errorf("while it runs: %+v, %v, want %+v", got, err, want)
	}
	s.Close()
	before, err := logFiles(o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Inspect(o.Dir); err != nil || got != want || !Begun(o.Dir) {
		t.Errorf("afterwards: %+v, %v, want %+v", got, err, want)
	}
	for _, name := range before {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for n := 1; n < 200; n++ { // cut anywhere in its head
			if err := os.WriteFile(name, text[:n], 0o600); err != nil {
				t.Fatal(err)
			}
			if got, err := Inspect(o.Dir); err == nil && got != want {
				t.Fatalf("cut to %d bytes: %+v", n, got)
			}
		}
	}
}
