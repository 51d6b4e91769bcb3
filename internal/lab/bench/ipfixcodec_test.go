package bench

import (
	"testing"
	"time"
)

func TestCodecMeasuresEveryShapeAndWork(t *testing.T) {
	rep, err := Codec(t.Context(), CodecOptions{Rounds: 1, Records: 10_000, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	if len(rep.Rows) != 20 || len(rep.Budgets) != 14 {
		t.Fatalf("%d rows, %d budgets", len(rep.Rows), len(rep.Budgets))
	}
	lengths := map[any]any{}
	for _, r := range rep.Rows {
		if r.Get("work") == workDecode {
			lengths[r.Get("shape")] = r.Get("record_bytes")
		}
		if a, ok := r.Get("allocations").(float64); r.Get("work") == workEncode && (!ok || a > 0.01) {
			t.Errorf("%v allocates %v times per record", r.Get("shape"), a)
		}
	}
	// The fields of the vds shape (docs/reference/ipfix.md).
	if lengths["vds IPv4"] != 72 || lengths["vds IPv6"] != 96 {
		t.Errorf("records of the vds shape have %v and %v bytes, want 72 and 96", lengths["vds IPv4"],
			lengths["vds IPv6"])
	}
}

func TestCodecRefusesNothingToDo(t *testing.T) {
	for _, o := range []CodecOptions{{Rounds: 0, Records: 1}, {Rounds: 1, Records: 0}} {
		o.Now = time.Now
		if _, err := Codec(t.Context(), o); err == nil {
			t.Errorf("%+v is measured", o)
		}
	}
}
