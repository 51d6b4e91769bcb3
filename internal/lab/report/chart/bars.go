package chart

import (
	"fmt"
	"math"
)

// Bars are horizontal bars from zero, in groups one below the other. If the longest would be more than a hundred times
// as long as the shortest, they are marks along a logarithmic axis instead: short bars would be invisible, and a bar on
// a logarithmic axis has no zero to start from.
type Bars struct {
	// Title is for readers who cannot see the picture.
	Title string
	// X formats a value, at the axis and at the end of its bar.
	X func(float64) string
	// Names are the names of the bars within each group, for the legend, which a single name does not need.
	Names  []string
	Groups []Group
}

// Group is the values under one label: one for each name, nil if it was not measured.
type Group struct {
	Label  string
	Values []*Value
}

const (
	barHeight  = 18
	groupGap   = 12
	maxLabel   = 40 // characters
	whisker    = 4
	marksFrom  = 100
	minVisible = 1.5 // pixels: a bar of almost nothing is visible even so
)

// SVG draws the bars; "" when there is nothing to draw.
func (b Bars) SVG() string {
	least, most, any := math.Inf(1), 0.0, false
	left, right := 0.0, 0.0
	for _, g := range b.Groups {
		left = max(left, textWidth(shorten(g.Label)))
		for _, v := range g.Values {
			if v != nil {
				any = true
				least, most = min(least, v.Low), max(most, v.High)
				right = max(right, textWidth(b.X(v.Y)))
			}
		}
	}
	if !any {
		return ""
	}
	if most == 0 {
		most = 1
	}
	left += 2 * gap
	right += gap // the upper quartile of the longest bar
	perGroup := float64(len(b.Names)*barHeight + groupGap)
	x := axis{from: 0, to: most * 1.02, at: left, until: fullWidth - right - 3*gap,
		log: least > 0 && most > marksFrom*least}
	if x.log {
		x.from, x.to = math.Pow(10, math.Floor(math.Log10(least))), math.Pow(10, math.Ceil(math.Log10(most)))
	}
	bottom := topMargin + perGroup*float64(len(b.Groups))
	c := &canvas{width: fullWidth, height: bottom + 1.5*lineHeight}
	if len(b.Names) > 1 {
		c.height += float64(len(b.Names)) * lineHeight
	}
	c.open(b.Title)
	b.axis(c, x, bottom)
	for n, g := range b.Groups {
		b.group(c, x, topMargin+perGroup*float64(n), g)
	}
	c.line("axis", x.at, topMargin, x.at, bottom)
	for n, name := range b.Names {
		if len(b.Names) == 1 {
			break
		}
		y := bottom + 1.5*lineHeight + float64(n)*lineHeight
		fmt.Fprintf(c, `<rect class="bar %s" x="%s" y="%s" width="%d" height="%d"/>`+"\n", colour(n), px(x.at), px(y),
			2*gap, gap)
		c.text("legend", x.at+3*gap, y+gap, start, name)
	}
	return c.close()
}

func (b Bars) axis(c *canvas, x axis, bottom float64) {
	last := -1e9
	ticks := x.steps(5)
	if x.log {
		ticks = x.decades()
	}
	for _, t := range ticks {
		c.line("grid", x.place(t), topMargin, x.place(t), bottom)
		label := b.X(t)
		if x.place(t)-textWidth(label)/2 > last {
			c.text("tick", x.place(t), bottom+lineHeight-4, middle, label)
			last = x.place(t) + textWidth(label)/2 + gap
		}
	}
}

func (b Bars) group(c *canvas, x axis, y float64, g Group) {
	c.text("tick", x.at-gap, y+float64(len(b.Names)*barHeight)/2+4, end, shorten(g.Label))
	for n, v := range g.Values {
		if v == nil {
			continue
		}
		top, mid := y+float64(n*barHeight)+1, y+float64(n*barHeight)+barHeight/2
		tip := g.Label + ": " + b.X(v.Y)
		if len(b.Names) > 1 {
			tip = g.Label + ", " + b.Names[n] + ": " + b.X(v.Y)
		}
		if !x.log {
			fmt.Fprintf(c, `<rect class="bar %s" x="%s" y="%s" width="%s" height="%d"><title>%s</title></rect>`+"\n",
				colour(n), px(x.at), px(top), px(max(minVisible, x.place(max(v.Y, 0))-x.at)), barHeight-2, Escape(tip))
		}
		if v.High > v.Low {
			low, high := x.place(max(v.Low, x.from)), x.place(v.High)
			c.line("whisker", low, mid, high, mid)
			c.line("whisker", low, mid-whisker, low, mid+whisker)
			c.line("whisker", high, mid-whisker, high, mid+whisker)
		}
		if x.log {
			c.mark(n, colour(n), x.place(v.Y), mid, tip)
		}
		c.text("value", x.place(max(v.High, x.from))+gap, mid+4, start, b.X(v.Y))
	}
}

// shorten cuts a label that would leave no space for the bars.
func shorten(s string) string { return shortenTo(s, maxLabel) }

func shortenTo(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}
