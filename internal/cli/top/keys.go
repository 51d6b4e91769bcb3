package top

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Action is what a key requests from the code around the view.
type Action int

// The actions.
const (
	Nothing Action = iota
	Quit
	Suspend
	Redraw // the whole screen: something else has written on it
)

// Keys that terminals send as sequences. A terminal in another mode sends O for [.
var sequences = map[string]string{"[A": "up", "[B": "down", "[C": "right", "[D": "left", "[5~": "page-up",
	"[6~": "page-down", "[H": "home", "[F": "end",
	"[1~": "home", "[4~": "end", "OA": "up", "OB": "down", "OC": "right", "OD": "left", "OH": "home", "OF": "end"}

// Split extracts the keys from a terminal's input: a character, or the name of a special key; other sequences are left
// out. Terminals send a sequence in one piece.
func Split(b []byte) (keys []string) {
	for len(b) > 0 {
		if b[0] == 0x1b {
			key, n := sequence(b)
			if key != "" {
				keys = append(keys, key)
			}
			b = b[n:]
			continue
		}
		r, n := utf8.DecodeRune(b)
		if r != utf8.RuneError {
			keys = append(keys, string(r))
		}
		b = b[n:]
	}
	return keys
}

// sequence parses what begins with an escape, and returns its length.
func sequence(b []byte) (key string, n int) {
	if len(b) == 1 || b[1] != '[' && b[1] != 'O' {
		return "escape", 1
	}
	n = 2
	for n < len(b) && (b[n] < 0x40 || b[n] > 0x7e) { // parameters, then one final byte (ECMA-48, 5.4)
		n++
	}
	n = min(n+1, len(b))
	return sequences[string(b[1:n])], n
}

// Key processes a pressed key.
func (m *Model) Key(key string) Action {
	if m.typing {
		return m.typed(key)
	}
	if m.help {
		m.help = false
		if key == "?" || key == "escape" {
			return Nothing
		}
	}
	switch key {
	case "?":
		m.help = true
	case "q", "\x03": // Ctrl-C is a character in raw mode
		return Quit
	case "\x1a": // Ctrl-Z
		return Suspend
	case "\x0c": // Ctrl-L
		return Redraw
	case "p", " ":
		m.Paused = !m.Paused
	default:
		if m.detail != nil {
			m.detailKey(key)
		} else {
			m.listKey(key)
		}
	}
	return Nothing
}

// listKey processes a key that selects or sorts the ports of the list.
func (m *Model) listKey(key string) {
	switch key {
	case "/":
		m.typing, m.Filter, m.offset = true, "", 0
	case "escape":
		m.Filter, m.offset = "", 0
	case "r":
		m.Up = !m.Up
	case "s", "right", ">":
		m.sortBy((m.Sort + 1) % m.columns())
	case "left", "<":
		m.sortBy((m.Sort + m.columns() - 1) % m.columns())
	case "\r", "\n":
		m.open()
	default:
		m.offset = scrolled(key, m.offset, max(1, m.body()-1), len(m.rows))
		m.pick(key)
	}
}

// columns returns how many columns there are to sort by: the last is the host's, where there are several.
func (m *Model) columns() Column {
	if m.hosted {
		return columns
	}
	return Host
}

// pick sorts by the column with the number of a digit.
func (m *Model) pick(key string) {
	if len(key) == 1 && key[0] >= '1' && key[0] <= '9' {
		m.sortBy(Column(key[0] - '1'))
	}
}

// sortBy sorts by another column, or reverses the order if it is the same.
func (m *Model) sortBy(c Column) {
	m.Up = c == m.Sort && !m.Up
	m.Sort, m.offset = c, 0
}

// typed processes a key while the filter is typed.
func (m *Model) typed(key string) Action {
	switch key {
	case "\r", "\n":
		m.typing = false
	case "escape":
		m.typing, m.Filter = false, ""
	case "\x03":
		return Quit
	case "\x1a":
		return Suspend
	case "\x7f", "\b":
		_, n := utf8.DecodeLastRuneInString(m.Filter)
		m.Filter = m.Filter[:len(m.Filter)-n]
	default:
		if r, n := utf8.DecodeRuneInString(key); n == len(key) && unicode.IsPrint(r) && len(m.Filter) < longestFilter {
			m.Filter += key
		}
	}
	return Nothing
}

// longestFilter is the most bytes of a filter: longer than any name.
const longestFilter = 128

// keys returns the keys, and their effects.
func keys() [][2]string {
	return [][2]string{{"q", "quit"}, {"1-9 or s", "sort by a column"}, {"r", "reverse the order"},
		{"/", "filter by a text"},
		{"Esc", "show all"}, {"Enter", "show the first port by itself; right and left: the next and the one before"},
		{"p", "pause"}, {"arrows, PgUp, PgDn, Home, End", "scroll"}, {"?", "show the keys"}}
}

// Help lists the keys, for the command's help.
func Help() string {
	var all []string
	for _, k := range keys() {
		all = append(all, k[0]+" "+k[1])
	}
	return strings.Join(all, "; ")
}

// keyWidth is the width of the keys' column, for the longest of them.
const keyWidth = 32

// helpLines returns the keys and the meaning of columns and colours, shown instead of the ports.
func helpLines() []Line {
	lines := []Line{{Text: "Keys", Head: true}}
	for _, k := range keys() {
		lines = append(lines, Line{Text: "  " + fit(k[0], keyWidth, false) + k[1]})
	}
	for _, text := range []string{"", "In is from the port's owner into the switch; ^ marks an uplink.",
		"BCAST/s: broadcast, multicast and unknown-unicast frames that the port sent. UNKNOWN/s, in a wide window: " +
			"the last.",
		"% at an uplink: of its speed, in the direction with more traffic.",
		"Yellow: frames that the port itself sent are dropped, or it floods.", "Any key shows the ports again."} {
		lines = append(lines, Line{Text: text})
	}
	return lines
}

// scrolled returns the first visible row of a list of n rows after a key; keys that do not scroll leave it unchanged.
// It may be beyond the list's ends.
func scrolled(key string, offset, page, n int) int {
	switch key {
	case "up", "k":
		return offset - 1
	case "down", "j":
		return offset + 1
	case "page-up":
		return offset - page
	case "page-down":
		return offset + page
	case "home", "g":
		return 0
	case "end", "G":
		return n
	}
	return offset
}
