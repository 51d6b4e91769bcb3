package observe

import (
	"math"
	"reflect"
	"testing"

	"heddle/internal/abi"
)

// Every counter is added but the one that is none, also one that comes later.
func TestPlusAddsEveryCounter(t *testing.T) {
	fill := func(n uint64) (c Counters) {
		v := reflect.ValueOf(&c).Elem()
		for i := range v.NumField() {
			switch f := v.Field(i); f.Kind() {
			case reflect.Uint64:
				f.SetUint(n)
			case reflect.Array:
				for k := range f.Len() {
					f.Index(k).SetUint(n)
				}
			case reflect.Map:
				f.Set(reflect.MakeMap(f.Type()))
				f.SetMapIndex(reflect.Zero(f.Type().Key()), reflect.ValueOf(n))
			default:
				t.Fatalf("a counter is a %s", f.Kind())
			}
		}
		return c
	}
	want := fill(5)
	want.MACsHeld = 2
	before := fill(3)
	if got := fill(2).Plus(before); !reflect.DeepEqual(got, want) {
		t.Errorf("sum %+v, want %+v", got, want)
	}
	if !reflect.DeepEqual(before, fill(3)) {
		t.Error("what is added has changed")
	}
}

// A host of another version understands every counter by its name, and sums end at the largest number.
func TestS79_EveryCounterHasAName(t *testing.T) {
	var c Counters
	n := uint64(0)
	for _, x := range c.named() {
		*x.value = 1
		if c.zero() {
			t.Errorf("nothing was counted although %s was", x.name)
		}
		*x.value = 0
	}
	for _, one := range []Counters{{Drops: map[abi.Reason]uint64{1: 1}}, {Refused: map[abi.Reason]uint64{1: 1}}} {
		if one.zero() {
			t.Errorf("nothing was counted in %+v", one)
		}
	}
	if !c.zero() {
		t.Errorf("something was counted in %+v", c)
	}
	for _, x := range c.named() {
		n++
		*x.value = n
	}
	plain := reflect.TypeFor[Counters]()
	fields := uint64(0)
	for i := range plain.NumField() {
		switch f := plain.Field(i); f.Type.Kind() {
		case reflect.Uint64:
			fields++
		case reflect.Array:
			fields += uint64(f.Type.Len())
		}
	}
	if fields != n+1 { // MACsHeld is none
		t.Errorf("%d counters have names, there are %d", n, fields-1)
	}
	c.Drops, c.Refused = map[abi.Reason]uint64{}, map[abi.Reason]uint64{}
	for r := range abi.Reasons() {
		c.Drops[r], c.Refused[r] = 100+uint64(r), 200+uint64(r)
	}
	var got Counters
	for _, x := range c.Names() {
		if !got.Set(x.Name, x.Value) {
			t.Errorf("%s is not known", x.Name)
		}
	}
	if !reflect.DeepEqual(got, c) {
		t.Errorf("got %+v, want %+v", got, c)
	}
	if got.Set("drop.of-tomorrow", 1) || got.Set("of-tomorrow", 1) {
		t.Error("a name that nothing has was taken")
	}
	huge := Counters{Delivered: math.MaxUint64 - 1}
	if sum := huge.Plus(huge); sum.Delivered != math.MaxUint64 {
		t.Errorf("the sum is %d", sum.Delivered)
	}
}
