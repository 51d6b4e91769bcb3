package scenario

import (
	"fmt"
	"strconv"
	"strings"
)

// Rate is a link's speed in bits per second.
type Rate uint64

// The range of a link's speed: below it, a single full-size frame takes longer than a connection waits; above it, the
// machine is slower than the limit.
const (
	minRate Rate = 1e6
	maxRate Rate = 100e9
)

var rateUnits = []struct {
	name string
	bits float64
}{{"Gbit", 1e9}, {"Mbit", 1e6}}

// UnmarshalText reads "10Gbit" or "100Mbit"; 1Mbit–100Gbit.
func (r *Rate) UnmarshalText(b []byte) error {
	for _, u := range rateUnits {
		number, ok := strings.CutSuffix(string(b), u.name)
		if !ok {
			continue
		}
		f, err := strconv.ParseFloat(number, 64)
		v := Rate(f * u.bits)
		if err != nil || v < minRate || v > maxRate {
			break
		}
		*r = v
		return nil
	}
	return fmt.Errorf(`%q is not a link's rate; write 1Mbit–100Gbit, such as "10Gbit"`, b)
}

// MarshalText is the inverse of UnmarshalText.
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

func (r Rate) String() string {
	for _, u := range rateUnits {
		if v := float64(r) / u.bits; v >= 1 {
			return strconv.FormatFloat(v, 'f', -1, 64) + u.name
		}
	}
	return strconv.FormatUint(uint64(r), 10) + "bit"
}
