package docgen

import (
	"heddle/internal/dev/layout"
)

// The page of the architecture is written by hand but for its tables of rooms, which stand between two comments.
const (
	architecturePath = "docs/explanation/architecture.md"
	roomsBegin       = "<!-- rooms: made from the packages by internal/dev/docgen (make generate) -->\n"
	roomsEnd         = "<!-- end of rooms -->\n"
)

// architecturePage is the explanation with the packages as they are.
func architecturePage(root string) (string, error) {
	packages, err := layout.Read(root)
	if err != nil {
		return "", err
	}
	return between(root, architecturePath, roomsBegin, "\n"+layout.Table(packages), roomsEnd)
}
