package cli

import (
	"time"

	"github.com/spf13/pflag"

	times "heddle/internal/spec/period"
)

// timeFlag is the one type of all flags that take a time: 5s, 2m, or a number of seconds. It stands in front of the
// library's own, which holds the value.
type timeFlag struct{ pflag.Value }

// Set takes what was written.
func (f timeFlag) Set(text string) error {
	v, err := times.Parse(text)
	if err != nil {
		return err
	}
	return f.Value.Set(v.String())
}

// timeText is a time that goes on as text, to whoever knows which times are right: seconds get their unit, all else
// stays as it is written.
type timeText struct{ pflag.Value }

// Set takes what was written.
func (f timeText) Set(text string) error {
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
func (f timeText) Type() string { return "duration" }

// durationType is what the library calls flags of a time.
const durationType = "duration"

// takeSeconds has a flag of a time take plain seconds too.
func takeSeconds(f *pflag.Flag) {
	switch f.Value.(type) {
	case timeFlag, timeText:
		return
	}
	if f.Value.Type() == durationType {
		f.Value = timeFlag{f.Value}
	}
}
