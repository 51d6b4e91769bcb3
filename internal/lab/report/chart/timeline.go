package chart

import "fmt"

// Timeline shows when packets arrived and when not: a lane for each receiver, with its longest silence left open.
type Timeline struct {
	// Title is for readers who cannot see the picture.
	Title string
	// From and To are the times at the edges, in seconds; the event is at 0. Event is its name.
	From, To float64
	Event    string
	// X formats a time or a duration, in seconds.
	X     func(float64) string
	Lanes []Lane
}

// Lane is one receiver. Its longest silence lasted from From to To; it is drawn wide enough to be visible.
type Lane struct {
	Label    string
	From, To float64
	// Start and End are the times between which packets were awaited.
	Start, End float64
}

const laneHeight = 22

// SVG draws the lanes; "" when there are none.
func (t Timeline) SVG() string {
	if len(t.Lanes) == 0 {
		return ""
	}
	left, right := 0.0, 0.0
	for _, l := range t.Lanes {
		left = max(left, textWidth(shorten(l.Label)))
		right = max(right, textWidth(t.X(l.To-l.From)))
	}
	left += 2 * gap
	x := axis{from: t.From, to: t.To, at: left, until: fullWidth - right - 3*gap}
	bottom := float64(2*lineHeight + len(t.Lanes)*laneHeight)
	c := &canvas{width: fullWidth, height: bottom + 2*lineHeight}
	c.open(t.Title)
	for _, s := range (axis{from: 0, to: t.To - t.From}).steps(8) {
		for _, at := range []float64{s, -s} {
			if at < t.From || at > t.To || s == 0 && at != 0 {
				continue
			}
			c.line("grid", x.place(at), 2*lineHeight-4, x.place(at), bottom)
			c.text("tick", x.place(at), bottom+lineHeight-2, middle, t.X(at))
			if s == 0 {
				break
			}
		}
	}
	for i, l := range t.Lanes {
		c.lane(t, x, float64(2*lineHeight+i*laneHeight), l)
	}
	c.line("event", x.place(0), lineHeight, x.place(0), bottom)
	c.text("legend", x.place(0), lineHeight-5, middle, t.Event)
	return c.close()
}

func (c *canvas) lane(t Timeline, x axis, y float64, l Lane) {
	bar := func(class string, from, to float64, tip string) {
		a, b := x.place(max(from, t.From)), x.place(min(to, t.To))
		if b <= a {
			return
		}
		fmt.Fprintf(c, `<rect class="%s" x="%s" y="%s" width="%s" height="%d"><title>%s</title></rect>`+"\n", class,
			px(a), px(y+3), px(max(minVisible, b-a)), laneHeight-8, Escape(tip))
	}
	c.text("tick", x.at-gap, y+laneHeight/2+4, end, shorten(l.Label))
	length := t.X(l.To - l.From)
	bar("bar s0", l.Start, l.From, l.Label+": packets come")
	bar("silence", l.From, l.To, l.Label+": nothing for "+length)
	bar("bar s0", l.To, l.End, l.Label+": packets come again")
	c.text("value", x.until+gap, y+laneHeight/2+4, start, length)
}
