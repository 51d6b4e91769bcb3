package chart

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Curves are several series over a logarithmic x axis, with a logarithmic y axis where the values span more than a
// decade.
type Curves struct {
	// Title is for readers who cannot see the picture.
	Title string
	// XName is the text below the x axis.
	XName string
	// Curves are several series over a logarithmic x axis, with a logarithmic y axis if the values span more than a
	// decade.
	X, Y   func(float64) string
	Series []Curve
}

// Curve is one series. Values that were not measured are left out.
type Curve struct {
	Name string
	// Reference marks the series with which the others are compared: it is dashed and has a colour of its own.
	Reference bool
	Points    []Point
}

// Point is a value at X > 0.
type Point struct {
	X float64
	Value
}

const (
	curveHeight = 340
	topMargin   = 14
	lineHeight  = 20
	gap         = 10
)

// SVG draws the curves; "" when there is nothing to draw.
func (k Curves) SVG() string {
	xs, least, most := k.extent()
	if len(xs) == 0 {
		return ""
	}
	y := axis{log: least > 0 && most > 10*least, to: most, at: topMargin + curveHeight, until: topMargin}
	switch {
	case y.log:
		y.from, y.to = math.Pow(10, math.Floor(math.Log10(least))), math.Pow(10, math.Ceil(math.Log10(most)+1e-9))
	case most <= 0:
		y.to = 1
	default:
		y.to *= 1.05
	}
	ticks := y.steps(5)
	if y.log {
		ticks = y.decades()
	}
	left := 0.0
	for _, t := range ticks {
		left = max(left, textWidth(k.Y(t)))
	}
	left += 2 * gap
	x := axis{log: true, from: xs[0] / 1.3, to: xs[len(xs)-1] * 1.3, at: left, until: fullWidth - gap - k.legendWidth()}
	c := &canvas{width: fullWidth, height: y.at + 2*lineHeight + gap}
	c.height = max(c.height, topMargin+float64(len(k.Series)+1)*lineHeight)
	c.open(k.Title)
	k.axes(c, x, y, xs, ticks)
	own := 0
	for n, s := range k.Series {
		class := referenceColour
		if !s.Reference {
			class = colour(own)
			own++
		}
		k.curve(c, x, y, n, class, s)
		k.legend(c, x.until+2*gap, topMargin+float64(n)*lineHeight+gap, n, class, s)
	}
	return c.close()
}

// extent returns the different x of all points, sorted, and the range of their values.
func (k Curves) extent() (xs []float64, least, most float64) {
	least, most = math.Inf(1), math.Inf(-1)
	for _, s := range k.Series {
		for _, p := range s.Points {
			xs = append(xs, p.X)
			least, most = min(least, p.Low), max(most, p.High)
		}
	}
	slices.Sort(xs)
	return slices.Compact(xs), least, most
}

func (k Curves) legendWidth() float64 {
	longest := 0.0
	for _, s := range k.Series {
		longest = max(longest, textWidth(s.Name))
	}
	return longest + 6*gap
}

func (k Curves) axes(c *canvas, x, y axis, xs, ticks []float64) {
	for _, t := range ticks {
		c.line("grid", x.at, y.place(t), x.until, y.place(t))
		c.text("tick", x.at-gap, y.place(t)+4, end, k.Y(t))
	}
	last := math.Inf(-1)
	for _, v := range xs {
		at, label := x.place(v), k.X(v)
		c.line("axis", at, y.at, at, y.at+4)
		if at-textWidth(label)/2 > last { // labels that would overlap are left out
			c.text("tick", at, y.at+lineHeight, middle, label)
			last = at + textWidth(label)/2
		}
	}
	c.line("axis", x.at, y.at, x.until, y.at)
	c.line("axis", x.at, y.until, x.at, y.at)
	c.text("tick", (x.at+x.until)/2, y.at+2*lineHeight, middle, k.XName)
}

func (k Curves) curve(c *canvas, x, y axis, n int, class string, s Curve) {
	points := slices.Clone(s.Points)
	if y.log {
		points = slices.DeleteFunc(points, func(p Point) bool { return p.Low <= 0 })
	}
	slices.SortFunc(points, func(a, b Point) int { return int(math.Copysign(1, a.X-b.X)) })
	var path []string
	for _, p := range points {
		path = append(path, px(x.place(p.X))+","+px(y.place(p.Y)))
	}
	fmt.Fprintf(c, `<polyline class="%s" points="%s"/>`+"\n", lineClass(class, s.Reference), strings.Join(path, " "))
	for _, p := range points {
		at := x.place(p.X)
		if p.High > p.Low {
			c.line("spread "+class, at, y.place(p.Low), at, y.place(p.High))
		}
		c.mark(n, class, at, y.place(p.Y), fmt.Sprintf("%s, %s: %s", s.Name, k.X(p.X), k.Y(p.Y)))
	}
}

func (k Curves) legend(c *canvas, at, y float64, n int, class string, s Curve) {
	c.line(lineClass(class, s.Reference), at, y, at+3*gap, y)
	c.mark(n, class, at+1.5*gap, y, "")
	c.text("legend", at+4*gap, y+4, start, s.Name)
}

func lineClass(colour string, reference bool) string {
	if reference {
		return "curve " + colour + " reference"
	}
	return "curve " + colour
}
