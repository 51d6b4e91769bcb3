package audit

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Every line ends with a hash of itself and of the line before, over all files of a series: a line that was changed,
// removed or put in by hand does not fit what follows. Who can write the files can compute the hashes anew; the head of
// a chain that was noted elsewhere shows that as well.

// link is the hash at the end of a line.
type link [sha256.Size]byte

func (k link) String() string { return hex.EncodeToString(k[:]) }

// chained is a line with its link, from the entry and the link of the line before.
func chained(before link, entry []byte) (line []byte, now link) {
	sum := sha256.New()
	_, _ = sum.Write(before[:]) // never fails
	_, _ = sum.Write(entry)
	sum.Sum(now[:0])
	line = append(append([]byte(nil), entry[:len(entry)-1]...), chainField...)
	return append(append(line, now.String()...), '"', '}'), now
}

// chainField is what a line has behind its entry: the link follows, then "}.
const chainField = `,"chain":"`

// longestChain is how much longer than its entry a line is at most: by its hash, the hash before and the end.
const longestChain = 2*(len(chainField)+2*sha256.Size) + 8

// split takes the link off a line; ok is false for a line without one, such as an earlier version wrote.
func split(line []byte) (entry []byte, k link, ok bool) {
	const end = len(chainField) + 2*sha256.Size + 2
	at := len(line) - end
	if at <= 0 || !bytes.HasPrefix(line[at:], []byte(chainField)) || !bytes.HasSuffix(line, []byte(`"}`)) {
		return line, k, false
	}
	if _, err := hex.Decode(k[:], line[at+len(chainField):len(line)-2]); err != nil {
		return line, k, false
	}
	return append(append([]byte(nil), line[:at]...), '}'), k, true
}

// Chain is what the check of a series found.
type Chain struct {
	// Series is one of Series.
	Series string
	// Lines were checked, Unchained of them have no link: an earlier version wrote them, before all others.
	Lines, Unchained int
	// Head is the link of the last line, in hexadecimal digits; "" for none. Number is that of its entry.
	Head   string
	Number int64
	// Known reports whether the head that was asked for is the link of one of the lines.
	Known bool
	// Faults say which lines do not fit, the first few.
	Faults []string
}

// mostFaults is how many faults of a series are listed.
const mostFaults = 20

// Verify checks that the log is as it was written, but for series that have not begun of callers who make many changes.
// head is the link of a line that somebody noted, "" for none.
func (l *Log) Verify(head string) (list []Chain, err error) {
	for _, s := range l.all() {
		c, err := s.verify(head)
		if err != nil {
			return nil, err
		}
		if s.name == laneName || c.Lines > 0 || !strings.HasPrefix(s.name, laneName) { // the others have begun
			list = append(list, c)
		}
	}
	return list, nil
}

func (s *series) verify(head string) (Chain, error) {
	v := verifier{Chain: Chain{Series: s.name}, head: head}
	paths, err := s.paths()
	if err != nil {
		return v.Chain, err
	}
	for _, p := range paths {
		if err := v.file(p); err != nil {
			return v.Chain, err
		}
	}
	return v.Chain, nil
}

// verifier checks a series line by line.
type verifier struct {
	Chain
	head  string
	last  link
	begun bool // a line with a link was seen
	part  bool // it may begin with any line, as a part of a log does that was exported
}

func (v *verifier) file(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil // it was the oldest, and has been removed
	}
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(f)
	lines.Buffer(make([]byte, 0, 64<<10), longestLine)
	for n := 1; lines.Scan(); n++ {
		if fault := v.line(lines.Bytes()); fault != "" && len(v.Faults) < mostFaults {
			v.Faults = append(v.Faults, fmt.Sprintf("%s, line %d: %s", filepath.Base(path), n, fault))
		}
	}
	return errors.Join(lines.Err(), f.Close())
}

// line checks one line, and says what does not fit.
func (v *verifier) line(line []byte) (fault string) {
	v.Lines++
	entry, k, ok := split(line)
	if !ok {
		v.Unchained++
		if v.begun {
			return "it has no hash: it was not written by a controller of this version, or only in part"
		}
		return ""
	}
	var e Entry
	if json.Unmarshal(entry, &e) == nil {
		v.Number = e.Number
	}
	if !v.begun { // the line before was removed for age
		_, _ = hex.Decode(v.last[:], []byte(e.After)) // what is no hash does not fit
	}
	anywhere := v.part && !v.begun && e.After == ""
	if _, want := chained(v.last, entry); want != k && !anywhere {
		fault = "it does not follow the line before: a line was changed, removed or put in"
	}
	v.last, v.begun, v.Head = k, true, k.String()
	v.Known = v.Known || v.Head == v.head
	return fault
}

// lastLink is the link of the newest line that has one.
func (s *series) lastLink() (k link, err error) {
	paths, err := s.paths()
	if err != nil {
		return k, err
	}
	for i := len(paths) - 1; i >= 0; i-- {
		v := verifier{}
		if err := v.file(paths[i]); err != nil {
			return k, err
		}
		if v.begun {
			return v.last, nil
		}
	}
	return k, nil
}
