package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heddle/internal/test/testkit"
)

func TestCheckPassesWhereLabsAreBuiltAndLeavesNothing(t *testing.T) {
	testkit.Root(t)
	if err := Check(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(netnsDir, fmt.Sprintf("labcheck%d", os.Getpid()))); err == nil {
		t.Error("the namespace of the check was left behind")
	}
}

func TestCheckSaysThatRootIsMissing(t *testing.T) {
	if err := check(1000); err == nil || !strings.Contains(err.Error(), "root") {
		t.Errorf("Check = %v, want that it takes root", err)
	}
}
