package report

// Matrix is a number from each of several things to each other one, such as the throughput between hosts.
type Matrix struct {
	// Title says what the numbers are, with their unit.
	Title string
	// From and To are what rows and columns are, such as "from host"; Names are the names of both.
	From, To string
	Names    []string
	// Cells are by row and column; nil where there is no number, such as from a thing to itself.
	Cells [][]*Cell
	// Marked says what the sign in marked cells means; "" where none can be.
	Marked string
}

// Cell is one number of a matrix.
type Cell struct {
	// Text is the number as people read it, short; Tip more about it.
	Text, Tip string
	// Shade is how dark the cell is, 0 to 1: the number as a share of the greatest.
	Shade float64
	// Marked: something is wrong with it.
	Marked bool
}
