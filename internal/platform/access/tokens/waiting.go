package tokens

import (
	"heddle/internal/platform/pki"
	"heddle/internal/platform/store"
)

// Waiting is the change after which a token counts nowhere until it is confirmed, also not at a controller of the
// version before, which looks at nothing but the token's record.
func Waiting(o store.Object, r *pki.APIRecord) (store.Change, error) {
	r.Wait()
	text, err := r.Encode()
	return store.Change{Key: o.Key, Doc: text, IfVersion: o.Version}, err
}

// Confirming is the change after which a token counts there again; none for one that does not wait.
func Confirming(st interface {
	Get(store.Key) (store.Object, bool)
}, id string) []store.Change {
	o, there := st.Get(store.Key{Kind: Kind, Name: id})
	if !there {
		return nil
	}
	r, err := pki.DecodeAPIRecord(o.Doc)
	if err != nil || len(r.Waiting) == 0 {
		return nil
	}
	r.Confirm()
	text, err := r.Encode()
	if err != nil {
		return nil
	}
	return []store.Change{{Key: o.Key, Doc: text, IfVersion: o.Version}}
}

// HalfConfirmed are the ids of those that somebody has confirmed at a controller of the version before, which does not
// know what their records say: they wait there still, and nothing else says so. marked reports whether a token has the
// mark of one that nobody has confirmed.
func HalfConfirmed(st interface {
	List(store.Kind) []store.Object
}, marked func(id string) bool) (ids []string) {
	for _, o := range st.List(Kind) {
		if marked(o.Name) {
			continue
		}
		if r, err := pki.DecodeAPIRecord(o.Doc); err == nil && len(r.Waiting) > 0 {
			ids = append(ids, o.Name)
		}
	}
	return ids
}
