package docgen

import (
	"heddle/internal/dev/layout"
)

// The page of the packages is written by hand but for its tables of rooms, which stand between two comments.
const (
	packagesPath = "docs/reference/packages.md"
	roomsBegin   = "<!-- rooms: made from the packages by internal/dev/docgen (make generate) -->\n"
	roomsEnd     = "<!-- end of rooms -->\n"
)

// packagesPage is the page with the packages as they are.
func packagesPage(root string) (string, error) {
	packages, err := layout.Read(root)
	if err != nil {
		return "", err
	}
	return between(root, packagesPath, roomsBegin, "\n"+layout.Table(packages), roomsEnd)
}
