package chart

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// Value is a number with the range it lies in; all three are finite, and Low ≤ Y ≤ High.
type Value struct{ Y, Low, High float64 }

// fullWidth is the width of a picture, which is about the width of its page, in pixels.
const fullWidth = 1100

// canvas collects the elements of one picture. Lengths are in pixels at the picture's own size; it scales with its
// page.
type canvas struct {
	strings.Builder
	width, height float64
}

// charWidth is the approximate width of a character of the labels, in pixels: texts are placed by it, never measured.
const charWidth = 7.6

func textWidth(s string) float64 { return charWidth * float64(len([]rune(s))) }

// open begins the picture. Its title is for readers who cannot see it.
func (c *canvas) open(title string) {
	fmt.Fprintf(c,
		`<svg class="plot" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %s %s" role="img" aria-label="%s">`+"\n",
		px(c.width), px(c.height), Escape(title))
}

func (c *canvas) close() string {
	c.WriteString("</svg>\n")
	return c.String()
}

// anchor says which point of a text is at its coordinates.
type anchor string

const (
	start  anchor = "start"
	middle anchor = "middle"
	end    anchor = "end"
)

func (c *canvas) text(class string, x, y float64, a anchor, s string) {
	fmt.Fprintf(c, `<text class="%s" x="%s" y="%s" text-anchor="%s">%s</text>`+"\n", class, px(x), px(y), a, Escape(s))
}

func (c *canvas) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(c, `<line class="%s" x1="%s" y1="%s" x2="%s" y2="%s"/>`+"\n", class, px(x1), px(y1), px(x2), px(y2))
}

// mark draws the sign of the n-th series around a point, in the given colour; tip is shown when the pointer rests on
// it.
func (c *canvas) mark(n int, colour string, x, y float64, tip string) {
	const r = 4
	class := "mark " + colour
	inside := ""
	if tip != "" {
		inside = "<title>" + Escape(tip) + "</title>"
	}
	polygon := func(points ...float64) {
		var p []string
		for i := 0; i < len(points); i += 2 {
			p = append(p, px(x+points[i])+","+px(y+points[i+1]))
		}
		fmt.Fprintf(c, `<polygon class="%s" points="%s">%s</polygon>`+"\n", class, strings.Join(p, " "), inside)
	}
	switch n % 5 {
	case 0:
		fmt.Fprintf(c, `<circle class="%s" cx="%s" cy="%s" r="%d">%s</circle>`+"\n", class, px(x), px(y), r, inside)
	case 1:
		polygon(-r, -r, r, -r, r, r, -r, r)
	case 2:
		polygon(0, -r-1, r+1, r, -r-1, r)
	case 3:
		polygon(0, -r-1, r+1, 0, 0, r+1, -r-1, 0)
	default:
		polygon(0, r+1, r+1, -r, -r-1, -r)
	}
}

// seriesClasses is how many colours a page must define: the classes s0 to s6, and sr for a series of reference.
const seriesClasses = 7

// colour returns the class of the n-th series.
func colour(n int) string { return fmt.Sprintf("s%d", n%seriesClasses) }

const referenceColour = "sr"

// px formats a length with at most one decimal, the same on every machine.
func px(v float64) string {
	s := fmt.Sprintf("%.1f", v)
	return strings.TrimSuffix(s, ".0")
}

// axis maps values to a range of pixels.
type axis struct {
	from, to  float64 // values, from < to
	at, until float64 // pixels
	log       bool
}

func (a axis) place(v float64) float64 {
	from, to := a.from, a.to
	if a.log {
		from, to, v = math.Log10(from), math.Log10(to), math.Log10(v)
	}
	return a.at + (v-from)/(to-from)*(a.until-a.at)
}

// decades returns the powers of ten of a logarithmic axis.
func (a axis) decades() []float64 {
	var all []float64
	for e := math.Ceil(math.Log10(a.from) - 1e-9); e <= math.Log10(a.to)+1e-9; e++ {
		all = append(all, math.Pow(10, e))
	}
	return all
}

// steps returns round numbers along a linear axis from 0, about as many as requested.
func (a axis) steps(about int) []float64 {
	raw := a.to / float64(about)
	size := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, m := range []float64{1, 2, 5, 10} {
		if m*size >= raw {
			size *= m
			break
		}
	}
	var all []float64
	for n := 0; float64(n)*size <= a.to*1.0001; n++ {
		all = append(all, float64(n)*size)
	}
	return all
}

// Escape makes a text safe for a document of HTML or SVG, also in an attribute: without markup, and without control
// characters and invalid UTF-8, which no document may contain.
func Escape(text string) string {
	return html.EscapeString(strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' || r == 0x7f || r == 0xfffe || r == 0xffff {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\ufffd")))
}
