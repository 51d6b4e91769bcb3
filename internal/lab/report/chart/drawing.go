package chart

import "fmt"

// Drawing is boxes on levels and the wires between them.
type Drawing struct {
	Boxes []Box
	Wires []Wire
}

// Box is one node. Level counts from the lowest; At is the position of its middle, 0–1 of the width.
type Box struct {
	Name, Kind string
	Lines      []string
	Class      string
	Level      int
	At         float64
}

// Wire joins two boxes by their index; there is a text near each end.
type Wire struct {
	From, To         int
	FromText, ToText string
}

const (
	boxPad   = 12
	levelGap = 64
	mostLine = 34 // characters of a line in a box
)

// SVG draws boxes and wires; "" when there are none. The description is for readers who cannot see the picture.
func (d Drawing) SVG(description string) string {
	if len(d.Boxes) == 0 {
		return ""
	}
	width, place := d.places()
	height := 0.0
	for _, p := range place {
		height = max(height, p.y+p.h)
	}
	c := &canvas{width: width, height: height + gap}
	c.open(description)
	for i, w := range d.Wires {
		c.wire(w, place[w.From], place[w.To], d.beside(i))
	}
	for i, b := range d.Boxes {
		c.box(b, place[i])
	}
	return c.close()
}

// spot is the position of a box: its middle, its upper edge, and its size, in pixels.
type spot struct{ x, y, w, h float64 }

// places returns the spot of each box. All boxes of a drawing have one width, as wide as the longest text needs.
func (d Drawing) places() (width float64, all []spot) {
	wide, top := 0.0, 0
	perLevel, tall := map[int]int{}, map[int]float64{}
	for _, b := range d.Boxes {
		perLevel[b.Level]++
		top = max(top, b.Level)
		wide = max(wide, textWidth(b.Kind+" "+b.Name))
		for _, l := range b.Lines {
			wide = max(wide, textWidth(shortenTo(l, mostLine)))
		}
		tall[b.Level] = max(tall[b.Level], float64(len(b.Lines)+1)*lineHeight+boxPad)
	}
	wide += 2 * boxPad
	width = fullWidth
	for _, n := range perLevel {
		width = max(width, float64(n)*(wide+2*gap))
	}
	upper := map[int]float64{}
	y := float64(gap)
	for l := top; l >= 0; l-- {
		upper[l] = y
		y += tall[l] + levelGap
	}
	for _, b := range d.Boxes {
		h := float64(len(b.Lines)+1)*lineHeight + boxPad
		all = append(all, spot{x: b.At * width, y: upper[b.Level] + (tall[b.Level]-h)/2, w: wide, h: h})
	}
	return width, all
}

func (c *canvas) box(b Box, p spot) {
	fmt.Fprintf(c, `<rect class="box %s" x="%s" y="%s" width="%s" height="%s" rx="6"/>`+"\n", b.Class, px(p.x-p.w/2),
		px(p.y), px(p.w), px(p.h))
	fmt.Fprintf(c, `<text class="value" x="%s" y="%s" text-anchor="middle"><tspan class="kind">%s </tspan>%s</text>`+"\n",
		px(p.x), px(p.y+lineHeight), Escape(b.Kind), Escape(b.Name))
	for i, l := range b.Lines {
		c.text("tick", p.x, p.y+lineHeight*float64(i+2), middle, shortenTo(l, mostLine))
	}
}

// beside returns by how many pixels a wire is shifted to the side, if several join the same two boxes.
func (d Drawing) beside(wire int) float64 {
	n, at, w := 0, 0, d.Wires[wire]
	for i, o := range d.Wires {
		if o.From == w.From && o.To == w.To || o.From == w.To && o.To == w.From {
			if i == wire {
				at = n
			}
			n++
		}
	}
	return (float64(at) - float64(n-1)/2) * wireGap
}

const wireGap = 90

// wire draws the line between the facing edges of two boxes. Its texts are near its ends; those of a shifted wire are
// outside.
func (c *canvas) wire(w Wire, a, b spot, aside float64) {
	x1, y1, x2, y2 := a.x+aside, a.y+a.h, b.x+aside, b.y
	if a.y > b.y {
		y1, y2 = a.y, b.y+b.h
	}
	switch clear := 0.4; {
	case a.y == b.y: // beside each other
		y1, y2 = a.y+a.h/2, b.y+b.h/2
		x1, x2 = a.x+a.w/2, b.x-b.w/2
	default:
		x1 = min(max(x1, a.x-clear*a.w), a.x+clear*a.w)
		x2 = min(max(x2, b.x-clear*b.w), b.x+clear*b.w)
	}
	c.line("wire", x1, y1, x2, y2)
	for _, t := range []struct {
		text string
		at   float64
	}{{w.FromText, 0.28}, {w.ToText, 0.78}} {
		if t.text != "" {
			c.label(x1+(x2-x1)*t.at, y1+(y2-y1)*t.at, aside, t.text)
		}
	}
}

// label draws a text on a wire, or beside a shifted one.
func (c *canvas) label(x, y, aside float64, text string) {
	const pad = 4
	width := textWidth(text) + 2*pad
	left := x - width/2
	switch {
	case aside < 0:
		left = x - width - pad
	case aside > 0:
		left = x + pad
	}
	left = min(max(left, 0), c.width-width)
	fmt.Fprintf(c, `<rect class="label" x="%s" y="%s" width="%s" height="%d"/>`+"\n", px(left), px(y-lineHeight/2),
		px(width), lineHeight)
	c.text("tick", left+width/2, y+4, middle, text)
}
