package cmd

import (
	"fmt"
	"strconv"
	"strings"

	"heddle/internal/platform/store"
)

// quota is the flag of an amount of bytes, with its unit, within the bounds of etcd's quota.
type quota struct{ bytes *int64 }

// units of amounts, as powers of two.
var units = []struct {
	name  string
	shift uint
}{{"KiB", 10}, {"MiB", 20}, {"GiB", 30}}

// Type is what help calls the value.
func (quota) Type() string { return "size" }

// String is the value as it is given; "" for none.
func (q quota) String() string {
	if q.bytes == nil || *q.bytes == 0 {
		return ""
	}
	return amount(*q.bytes)
}

// amount is so many bytes in the largest unit that divides them.
func amount(n int64) string {
	for i := len(units) - 1; i >= 0; i-- {
		if n%(1<<units[i].shift) == 0 {
			return strconv.FormatInt(n>>units[i].shift, 10) + units[i].name
		}
	}
	return strconv.FormatInt(n, 10)
}

// Set reads a value.
func (q quota) Set(text string) error {
	number, shift := text, uint(0)
	for _, u := range units {
		if rest, ok := strings.CutSuffix(text, u.name); ok {
			number, shift = rest, u.shift
		}
	}
	n, err := strconv.ParseUint(number, 10, 63)
	if err != nil {
		return fmt.Errorf("%q is no size: give a whole number with KiB, MiB or GiB, such as 512MiB", text)
	}
	if n > uint64(store.MostQuota)>>shift || n<<shift < store.LeastQuota {
		return fmt.Errorf("%s is not within %s and %s", text, amount(store.LeastQuota), amount(store.MostQuota))
	}
	*q.bytes = int64(n << shift)
	return nil
}
