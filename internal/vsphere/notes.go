package vsphere

import "heddle/internal/spec/printable"

// Outcome is what became of a setting.
type Outcome string

// The outcomes that are noted. What means the same as before is not.
const (
	// Absent: nothing in the definition has the setting's effect.
	Absent Outcome = "absent"
	// Changed: the definition has something in its place which does not mean quite the same.
	Changed Outcome = "changed"
	// Renamed: the object has another name.
	Renamed Outcome = "renamed"
)

// Note says what became of one setting of one object.
type Note struct {
	// Object is the object, such as "port group dvs/web", by its name in vSphere.
	Object string `json:"object"`
	// Setting is what vSphere calls it.
	Setting string `json:"setting"`
	// Value is the one in vSphere.
	Value   string  `json:"value,omitempty"`
	Outcome Outcome `json:"outcome"`
	// Advice is what is in the definition now, and what to do.
	Advice string `json:"advice"`
}

// about notes what becomes of settings of one object.
type about struct {
	to     *Result
	object string
}

func (a about) note(outcome Outcome, setting, value, advice string) {
	a.to.Notes = append(a.to.Notes, Note{a.object, printable.Short(setting, 200), printable.Short(value, 200), outcome,
		printable.Short(advice, 1000)})
}

func (a about) absent(setting, value, advice string)  { a.note(Absent, setting, value, advice) }
func (a about) changed(setting, value, advice string) { a.note(Changed, setting, value, advice) }

// on is about an object of a kind.
func (r *Result) on(kind, name string) about {
	return about{r, kind + " " + printable.Short(name, 200)}
}

// part is about a part of the object.
func (a about) part(kind, name string) about {
	return about{a.to, a.object + ", " + kind + " " + printable.Short(name, 200)}
}
