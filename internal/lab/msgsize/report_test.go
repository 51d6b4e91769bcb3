package msgsize

import (
	"testing"
)

func TestReport_DrawsTheLab(t *testing.T) {
	if r := measured(Options{Quick: true}).Report(); len(r.Labs) != 1 || len(r.Conclusions) == 0 {
		t.Errorf("%d pictures, %d conclusions", len(r.Labs), len(r.Conclusions))
	}
}
