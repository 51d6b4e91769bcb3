package trace

import (
	"fmt"
	"slices"

	"heddle/internal/model"
)

// compare lists the differences between the kernel program and the model.
func compare(want *model.Result, got *Outcome) (lines []string) {
	if want.Delivered != got.Delivered || want.Reason != got.Reason {
		lines = append(lines, fmt.Sprintf("the model says %s, the kernel program %s",
			outcomeWords(want.Delivered, want.Reason), outcomeWords(got.Delivered, got.Reason)))
	}
	w, g := listed(want.Copies, want.Refused), listed(got.Copies, got.Refused)
	for _, only := range []struct {
		who  string
		a, b []said
	}{{"the model alone", w, g}, {"the kernel program alone", g, w}} {
		left := slices.Clone(only.b)
		for _, x := range only.a {
			if i := slices.Index(left, x); i >= 0 {
				left = slices.Delete(left, i, i+1)
				continue
			}
			lines = append(lines, fmt.Sprintf("%s has %s", only.who, x.words))
		}
	}
	return lines
}

// said describes a copy or a refusal in words, for comparison.
type said struct{ words, bytes string }

func listed(copies []model.Copy, refused []model.Refusal) (list []said) {
	for _, c := range copies {
		whom := c.To.String()
		if c.HostStack {
			whom = "the host behind " + whom
		}
		list = append(list, said{fmt.Sprintf("a copy for %s, %s, %d bytes", whom, outerTag(c.Frame), len(c.Frame)),
			string(c.Frame)})
	}
	for _, r := range refused {
		whom := r.Port.String()
		if r.Port.Name == "" {
			whom = "nobody in particular"
		}
		list = append(list, said{words: fmt.Sprintf("a copy refused for %s (%s)", whom, r.Reason)})
	}
	return list
}
