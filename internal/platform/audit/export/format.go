package export

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"heddle/internal/platform/audit"
)

// jsonLine is a line of the log with the names of its series and controller behind its hash: cut off there, it is the
// line of the log again.
func jsonLine(controller string, l audit.Line) []byte {
	name, err := json.Marshal(controller)
	if err != nil { // a string is always JSON
		panic(err)
	}
	text := bytes.TrimSuffix(l.Text, []byte("}"))
	return fmt.Appendf(bytes.Clone(text), `,"series":%q,"controller":%s}`, l.Series, name)
}

// Original is the line of the log from which an exported one was made, with the names of its series and controller.
func Original(line []byte) (series, controller string, text []byte, ok bool) {
	i := bytes.LastIndex(line, []byte(`,"series":"`))
	if i < 0 {
		return "", "", nil, false
	}
	var names struct{ Series, Controller string }
	if json.Unmarshal(append([]byte{'{'}, line[i+1:]...), &names) != nil {
		return "", "", nil, false
	}
	return names.Series, names.Controller, append(bytes.Clone(line[:i]), '}'), true
}

// RFC 5424: facility 13 is the log audit.
const (
	facility = 13
	notice   = 5
	warning  = 4
	appName  = "heddle-controller"
	// longestDatagram is how long a message is at most that goes by UDP: what every receiver should take is 2048 bytes
	// (RFC 5426, section 3.2); most take this much.
	longestDatagram = 8192
	longestHost     = 255
)

// syslogLine is a message of RFC 5424 whose text is the line in JSON. longest bounds it, 0 for no bound: of a longer
// one the objects are left out.
func syslogLine(host, controller string, l audit.Line, longest int) []byte {
	severity := notice
	if l.Result == audit.Failed || l.Result == audit.Refused {
		severity = warning
	}
	if host = headerText(host, longestHost); host == "" {
		host = "-"
	}
	head := fmt.Sprintf("<%d>1 %s %s %s - %s - ", facility*8+severity,
		l.At.UTC().Format("2006-01-02T15:04:05.000000Z"), host, appName, "audit-"+headerText(l.Series, 16))
	text := jsonLine(controller, l)
	if longest > 0 && len(head)+len(text) > longest {
		short := l.Entry
		short.Objects = []string{strconv.Itoa(len(short.Objects)) + " left out"}
		short.Groups = nil
		if line, err := json.Marshal(short); err == nil {
			text = jsonLine(controller, audit.Line{Series: l.Series, Text: line})
		}
	}
	return append([]byte(head), text...)
}

// headerText leaves of a text what a header of RFC 5424 may have: printable ASCII without spaces.
func headerText(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if r < 33 || r > 126 {
			return -1
		}
		return r
	}, text)
	return text[:min(len(text), most)]
}

// lostLine stands for lines that were removed before they could be sent.
func lostLine(series string, now time.Time) audit.Line {
	e := audit.Entry{At: now.UTC(), Call: "Export", Result: audit.Failed,
		Error: "entries of this series were removed for age before they could be sent: the log was not delivered " +
			"for too long"}
	text, err := json.Marshal(e)
	if err != nil { // it has nothing that JSON has not
		panic(err)
	}
	return audit.Line{Series: series, Text: text, Entry: e}
}
