// Package page writes a report as one self-contained HTML file: what it shows, the lab, tables with their spread,
// charts, budgets, how and where it was measured. It has no script and loads nothing, so that it can be mailed,
// archived and printed.
//
//layout:floor=workshop pure
package page
