package docgen

//go:generate go run ./cmd/docgen ../../..

import (
	"fmt"
	"os"
	"path/filepath"
)

// Page is a generated file: its path below the repository's root, with slashes, and its text.
type Page struct {
	Path string
	Text string
}

// Pages makes every generated page from the repository at root.
func Pages(root string) ([]Page, error) {
	behaviour, err := behaviourPage(root)
	if err != nil {
		return nil, err
	}
	advice, err := advisePage(root)
	if err != nil {
		return nil, err
	}
	configuration, err := configurationPage(root)
	if err != nil {
		return nil, err
	}
	rooms, err := packagesPage(root)
	if err != nil {
		return nil, err
	}
	licences, err := licencesPage(root)
	if err != nil {
		return nil, err
	}
	pages := []Page{
		{licencesPath, licences},
		{packagesPath, rooms},
		{advisePath, advice},
		{configurationPath, configuration},
		{"docs/reference/behaviour.md", behaviour},
		{"docs/reference/reasons.md", reasonsPage()},
		{"docs/reference/roles.md", rolesPage()},
		{"docs/reference/cli.md", cliPage()},
		{"docs/reference/metrics.md", metricsPage()},
	}
	for _, s := range schemas() {
		contract, err := apiPage(root, s)
		if err != nil {
			return nil, err
		}
		pages = append(pages, Page{s.path, contract})
	}
	return pages, nil
}

// Write makes every generated page and writes it below root.
func Write(root string) error {
	pages, err := Pages(root)
	if err != nil {
		return err
	}
	for _, p := range pages {
		if err := os.WriteFile(filepath.Join(root, filepath.FromSlash(p.Path)), []byte(p.Text), 0o644); err != nil {
			return fmt.Errorf("write a reference page: %w", err)
		}
	}
	return nil
}

// generated is the line that names a page's source.
func generated(from string) string {
	return fmt.Sprintf("<!-- Generated from %s by internal/dev/docgen (make generate); do not edit. -->\n\n", from)
}
