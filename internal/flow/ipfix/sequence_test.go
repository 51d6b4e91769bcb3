package ipfix

import "testing"

func TestSequenceCountsLostRecords(t *testing.T) {
	type step struct {
		sequence uint32
		records  int
		gap      int64
	}
	for name, c := range map[string]struct {
		steps          []step
		lost, restarts uint64
	}{
		"none":                     {[]step{{100, 10, 0}, {110, 0, 0}, {110, 5, 0}}, 0, 0},
		"lost":                     {[]step{{0, 10, 0}, {30, 10, 20}, {41, 1, 1}}, 21, 0},
		"lost over the end of 2³²": {[]step{{4294967290, 6, 0}, {4, 1, 4}, {5, 1, 0}}, 4, 0},
		"overtaken":                {[]step{{0, 10, 0}, {20, 10, 10}, {10, 10, -10}, {30, 1, 0}}, 0, 0},
		"overtaken, one of three": {[]step{{0, 10, 0}, {40, 10, 30}, {20, 10, -10}, {50, 1, 0}, {30, 10, -10},
			{10, 10, -10}}, 0, 0},
		"twice":                   {[]step{{0, 10, 0}, {10, 10, 0}, {10, 10, 0}, {20, 1, 0}}, 0, 0},
		"an old one twice":        {[]step{{0, 10, 0}, {10, 10, 0}, {0, 10, 0}, {20, 1, 0}}, 0, 0},
		"late and twice":          {[]step{{0, 10, 0}, {20, 10, 10}, {10, 10, -10}, {10, 10, 0}, {30, 1, 0}}, 0, 0},
		"began anew":              {[]step{{5000, 10, 0}, {0, 10, 0}, {10, 10, 0}, {20, 10, 0}}, 0, 1},
		"began anew, with a loss": {[]step{{5000, 10, 0}, {0, 10, 0}, {15, 10, 5}, {25, 10, 0}}, 5, 1},
		"began anew after a gap":  {[]step{{0, 10, 0}, {5000, 10, 4990}, {0, 5, 0}, {5, 10, 0}, {15, 10, 0}}, 4990, 1},
		"began anew far away":     {[]step{{3000000000, 10, 0}, {0, 10, 0}, {10, 10, 0}}, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var s Sequence
			for i, st := range c.steps {
				if got := s.Message(st.sequence, st.records, true); got != st.gap {
					t.Errorf("%s: step %d: %d, want %d", name, i, got, st.gap)
				}
			}
			if s.Lost != c.lost || s.Restarts != c.restarts {
				t.Errorf("%s: lost %d, restarts %d, want %d, %d", name, s.Lost, s.Restarts, c.lost, c.restarts)
			}
		})
	}
}

func TestSequenceAfterAMessageThatCannotBeCounted(t *testing.T) {
	var s Sequence
	s.Message(0, 10, true)
	s.Message(10, 0, false)
	if got := s.Message(500, 5, true); got != 0 {
		t.Errorf("%d are said to be lost where nobody knows", got)
	}
	if got := s.Message(507, 5, true); got != 2 || s.Lost != 2 {
		t.Errorf("lost %d, want 2", got)
	}
}

func TestGapsRememberedAreBounded(t *testing.T) {
	var s Sequence
	for n := range uint32(1000) {
		s.Message(n*20, 10, true)
		s.Message(n*20-5, 1, true) // in the middle of the last gap
	}
	if len(s.gaps) > rememberedGaps {
		t.Errorf("%d gaps", len(s.gaps))
	}
	if s.Lost != 999*9 {
		t.Errorf("lost %d, want %d", s.Lost, 999*9)
	}
}
