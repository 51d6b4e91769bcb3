package definition

import (
	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/slice"
	"heddle/internal/slice/fields"
)

// ObjectChanges are what a change does, field by field.
func ObjectChanges(have *slice.Set, c slice.Change) (list []*controllerv1.ObjectChange) {
	for _, o := range c.Put {
		out := &controllerv1.ObjectChange{Kind: string(o.Kind), Name: o.Name, Change: "added"}
		if was, ok := have.Get(o.Key); ok {
			out.Change = "changed"
			for _, d := range fields.Diff(was.Doc, o.Doc) {
				out.Fields = append(out.Fields, &controllerv1.FieldChange{Field: d.Field, Old: d.Old, New: d.New})
			}
		}
		list = append(list, out)
	}
	for _, k := range c.Removed {
		list = append(list, &controllerv1.ObjectChange{Kind: string(k.Kind), Name: k.Name, Change: "removed"})
	}
	return list
}
