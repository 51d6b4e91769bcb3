package chart

import (
	"fmt"
	"math"
)

// Matrix is a grid of numbers from each of several things to each other one. Each number is written in its cell; the
// shade, of one colour, only helps the eye, and a marked cell has a sign and a border, so that nothing depends on
// telling colours apart.
type Matrix struct {
	// Title is for readers who cannot see the picture.
	Title string
	// From and To name rows and columns as a whole, Names are those of both.
	From, To string
	Names    []string
	// Cells are by row and column; nil for an empty one.
	Cells [][]*Cell
	// Marked is the legend of the sign of marked cells; "" for none.
	Marked string
}

// Cell is one number: its text, more about it, its shade from 0 to 1, and whether it is marked.
type Cell struct {
	Text, Tip string
	Shade     float64
	Marked    bool
}

// Sizes of a matrix, in pixels, and in characters of names.
const (
	cellHeight = 28
	leastCell  = 58
	mostCell   = 130
	cellName   = 22
	// cellShades is how many shades a page must define: the classes d0 to d5, from nothing to the darkest.
	cellShades = 6
	// markSign is in each marked cell, before its number.
	markSign = "▲ "
)

// SVG draws the matrix; "" when there is nothing to draw.
func (m Matrix) SVG() string {
	if len(m.Names) == 0 {
		return ""
	}
	left, widest := textWidth(shortenTo(m.From, cellName)), 0.0
	for i, name := range m.Names {
		left = max(left, textWidth(shortenTo(name, cellName)))
		widest = max(widest, textWidth(shortenTo(name, cellName)))
		for _, c := range m.Cells[i] {
			if c != nil {
				widest = max(widest, textWidth(m.text(c)))
			}
		}
	}
	left += 2 * gap
	width := max(leastCell, min(mostCell, widest+2*gap))
	top := float64(2*lineHeight + gap)
	bottom := top + cellHeight*float64(len(m.Names))
	c := &canvas{width: max(fullWidth, left+width*float64(len(m.Names))+gap), height: bottom + 2*gap}
	if m.Marked != "" {
		c.height += lineHeight
	}
	c.openWide(m.Title)
	c.text("tick", left-gap, top-gap, end, shortenTo(m.From, cellName))
	c.text("tick", left, lineHeight, start, m.To+" →")
	for i, name := range m.Names {
		c.text("legend", left+width*(float64(i)+0.5), top-gap, middle, shortenTo(name, cellName))
		c.text("legend", left-gap, top+cellHeight*(float64(i)+0.5)+5, end, shortenTo(name, cellName))
		for j, cell := range m.Cells[i] {
			m.cell(c, left+width*float64(j), top+cellHeight*float64(i), width, cell)
		}
	}
	if m.Marked != "" {
		c.text("legend", left, bottom+gap+lineHeight-4, start, markSign+m.Marked)
	}
	return c.close()
}

func (m Matrix) text(c *Cell) string {
	if c.Marked {
		return markSign + c.Text
	}
	return c.Text
}

func (m Matrix) cell(c *canvas, x, y, width float64, cell *Cell) {
	if cell == nil {
		fmt.Fprintf(c, `<rect class="cell none" x="%s" y="%s" width="%s" height="%d"/>`+"\n", px(x+1), px(y+1),
			px(width-2), cellHeight-2)
		return
	}
	class := fmt.Sprintf("cell d%d", int(math.Round(min(1, max(0, cell.Shade))*(cellShades-1))))
	if cell.Marked {
		class += " marked"
	}
	fmt.Fprintf(c, `<g><title>%s</title><rect class="%s" x="%s" y="%s" width="%s" height="%d"/>`+"\n", Escape(cell.Tip),
		class, px(x+2), px(y+2), px(width-4), cellHeight-4)
	c.text("value", x+width/2, y+cellHeight/2+5, middle, m.text(cell))
	c.WriteString("</g>\n")
}

// openWide begins a picture that keeps its own size where it is wider than its page.
func (c *canvas) openWide(title string) {
	wide := ""
	if c.width > fullWidth {
		wide = fmt.Sprintf(` style="width: %spx"`, px(c.width))
	}
	fmt.Fprintf(c,
		`<svg class="plot" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %s %s" role="img" aria-label="%s"%s>`+"\n",
		px(c.width), px(c.height), Escape(title), wide)
}
