package cli

import (
	"time"

	"github.com/spf13/pflag"

	times "heddle/internal/spec/period"
)

// timeFlag is the common type of all flags that take a time: 5s, 2m, or a number of seconds. It wraps the library's own
// type, which holds the value.
type timeFlag struct{ pflag.Value }

// Set parses the text.
func (f timeFlag) Set(text string) error {
	v, err := times.Parse(text)
	if err != nil {
		return err
	}
	return f.Value.Set(v.String())
}

// TimeText is a time that is passed on as text to code that knows which times are valid: plain seconds get their unit,
// everything else stays as written.
type TimeText struct{ pflag.Value }

// Set parses the text.
func (f TimeText) Set(text string) error {
	v, err := times.Parse(text)
	if err != nil {
		return err
	}
	if _, err := time.ParseDuration(text); err != nil {
		text = v.String()
	}
	return f.Value.Set(text)
}

// Type returns the value's name in help.
func (f TimeText) Type() string { return "duration" }

// durationType is the library's type name for flags of a time.
const durationType = "duration"

// TakeSeconds makes a flag of a time accept plain seconds too.
func TakeSeconds(f *pflag.Flag) {
	switch f.Value.(type) {
	case timeFlag, TimeText:
		return
	}
	if f.Value.Type() == durationType {
		f.Value = timeFlag{f.Value}
	}
}
