package docgen

import (
	"os"
	"strings"
	"testing"
)

func TestLicencesThatAreNotAgreedAreRefused(t *testing.T) {
	own, err := os.ReadFile(root + "/LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	if ids, err := identify(own); err != nil || len(ids) != 1 {
		t.Errorf("Heddle's own licence: %q, %v", ids, err)
	}
	for text, want := range map[string]string{
		"Do with it what you like, but pay me on Fridays.":                          "known licences",
		"SPDX-License-Identifier: AGPL-3.0-only\nGNU AFFERO GENERAL PUBLIC LICENSE": "",
	} {
		if ids, err := identify([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %q, %v", text, ids, err)
		}
	}
	if _, err := licences(t.TempDir()); err == nil {
		t.Error("a module without a licence file is taken")
	}
}
