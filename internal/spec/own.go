package spec

import "reflect"

// Over is a port's policy when it sets p on top of what it had set before: field by field, p's value if p sets one
// (D3).
func (p Policy) Over(before Policy) Policy {
	lay(reflect.ValueOf(&before).Elem(), reflect.ValueOf(p))
	return before
}

// lay copies every field that is set to the same field of base. A field is unset at its zero value, as in the file;
// pointers and lists are treated as a whole.
func lay(base, set reflect.Value) {
	if set.Kind() != reflect.Struct {
		if !set.IsZero() {
			base.Set(set)
		}
		return
	}
	for i := range set.NumField() {
		lay(base.Field(i), set.Field(i))
	}
}
