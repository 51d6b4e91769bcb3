package observe

import (
	"reflect"
	"testing"
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
