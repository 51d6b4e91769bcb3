package api

import (
	"context"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/api/heddle/controller/v1/controllerv1connect"
)

// DefinitionChange is a change of the definition, as the controllers recorded it.
type DefinitionChange struct {
	// Revision is the one that it made, Base the one that it was made on.
	Revision int64 `json:"revision"`
	Base     int64 `json:"base"`
	// Number counts the changes that were recorded.
	Number  int64     `json:"number"`
	At      time.Time `json:"at"`
	Who     string    `json:"who"`
	File    string    `json:"file"`
	Message string    `json:"message"`
	// Restores is the revision whose definition it brought back; 0 for another change.
	Restores int64 `json:"restores"`
	// Objects are what it changed, a line each, Left how many more there are.
	Objects []string `json:"objects"`
	Left    int      `json:"left"`
	// Gap: the definition had been changed without a record since the record before.
	Gap bool `json:"gap"`
	// How the hosts made it, where not each as soon as it could: together at an instant, or in stages.
	How string `json:"how"`
}

// DefinitionChanges are changes of the definition, the newest first.
type DefinitionChanges struct {
	Changes []DefinitionChange `json:"changes"`
	// More is what Before has to be for the next ones; 0 where there are none.
	More int64 `json:"more"`
}

// ChangeQuery selects changes of the definition: those made on a revision below Before, 0 for the newest, and how many.
type ChangeQuery struct {
	Before int64 `json:"before"`
	Limit  int   `json:"limit"`
	// Who made them; "" for anybody.
	Who string `json:"who,omitempty"`
	// Text is in the message, the file, or the lines of what was changed, in capitals or small letters; "" for any.
	Text string `json:"text,omitempty"`
	// Since is when they were made at the earliest; zero for any time.
	Since time.Time `json:"since,omitzero"`
}

// filters reports whether not every change is wanted.
func (q ChangeQuery) filters() bool { return q.Who != "" || q.Text != "" || !q.Since.IsZero() }

// DefinitionDiff is what is different between two definitions.
type DefinitionDiff struct {
	From    int64           `json:"from"`
	To      int64           `json:"to"`
	Objects []DefinedObject `json:"objects"`
}

// historyCalls are those about earlier definitions.
type historyCalls struct {
	fleet *Fleet
	rpc   controllerv1connect.HistoryServiceClient
}

// Changes lists changes of the definition.
func (h historyCalls) Changes(ctx context.Context, q ChangeQuery) (*DefinitionChanges, error) {
	all := &DefinitionChanges{}
	for {
		out, err := call[DefinitionChanges, controllerv1.ListChangesRequest, controllerv1.ListChangesResponse](ctx,
			h.fleet, h.rpc.ListChanges, q)
		if err != nil {
			return nil, err
		}
		all.Changes, all.More = append(all.Changes, out.Changes...), out.More
		if q.Limit -= len(out.Changes); q.Limit <= 0 || out.More == 0 || !q.filters() {
			return all, nil
		}
		q.Before = out.More // a call looks at so many changes, and a filter may leave few of them
	}
}

// Compare says what is different between the definitions of two revisions; to is 0 for the definition as it is.
func (h historyCalls) Compare(ctx context.Context, from, to int64) (*DefinitionDiff, error) {
	out, err := call[DefinitionDiff, controllerv1.CompareDefinitionsRequest, controllerv1.CompareDefinitionsResponse](
		ctx, h.fleet, h.rpc.CompareDefinitions, struct {
			From int64 `json:"from"`
			To   int64 `json:"to"`
		}{from, to})
	return &out, err
}

// Past returns the definition of a revision.
func (h historyCalls) Past(ctx context.Context, revision int64) (*Definition, error) {
	out, err := call[struct {
		Revision int64  `json:"revision"`
		Content  string `json:"content"`
	}, controllerv1.GetPastDefinitionRequest, controllerv1.GetPastDefinitionResponse](ctx, h.fleet,
		h.rpc.GetPastDefinition, struct {
			Revision int64 `json:"revision"`
		}{revision})
	return &Definition{Revision: out.Revision, Content: out.Content}, err
}
