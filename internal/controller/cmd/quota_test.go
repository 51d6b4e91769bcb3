package cmd

import (
	"io"
	"strings"
	"testing"
)

func TestWhatAQuotaCanBe(t *testing.T) {
	for _, c := range []struct {
		text string
		want int64
		said string
	}{
		{"16MiB", 16 << 20, "16MiB"},
		{"16384KiB", 16 << 20, "16MiB"},
		{"16777217", 16<<20 + 1, "16777217"},
		{"64GiB", 64 << 30, "64GiB"},
		{"15MiB", 0, "not within 16MiB and 64GiB"},
		{"65GiB", 0, "not within"},
		{"18446744073709551615GiB", 0, "no size"},
		{"9223372036854775807GiB", 0, "not within"},
		{"17592186044416GiB", 0, "not within"},
		{"0", 0, "not within"},
		{"-1GiB", 0, "no size"},
		{"1GB", 0, "KiB, MiB or GiB"},
		{"1.5GiB", 0, "no size"},
		{"GiB", 0, "no size"},
		{"", 0, "no size"},
		{"1 GiB", 0, "no size"},
	} {
		t.Run(c.text, func(t *testing.T) {
			var got int64
			q := quota{&got}
			err := q.Set(c.text)
			if got != c.want || (err == nil) != (c.want > 0) {
				t.Fatalf("%d, %v", got, err)
			}
			said := q.String()
			if err != nil {
				said = err.Error()
			}
			if !strings.Contains(said, c.said) {
				t.Error(said)
			}
		})
	}
}

// The quota of an etcd of others is not the controller's.
func TestAQuotaOfAnotherEtcdIsRefused(t *testing.T) {
	c := New(io.Discard, "", nil)
	c.SetArgs([]string{"--etcd-quota", "1GiB", "--etcd-endpoints", "https://127.0.0.1:1", "--data-dir", t.TempDir()})
	if err := c.Execute(); err == nil || !strings.Contains(err.Error(), "--quota-backend-bytes") {
		t.Errorf("%v", err)
	}
}
