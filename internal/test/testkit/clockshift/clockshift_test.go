package clockshift

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"heddle/internal/test/testkit"
)

const sayVar = "HEDDLE_SAY_TIME"

func TestMain(m *testing.M) {
	if os.Getenv(sayVar) != "" {
		fmt.Print(time.Now().Year())
		return
	}
	os.Exit(m.Run())
}

func TestAProgramHasAClockOfItsOwn(t *testing.T) {
	testkit.Root(t)
	ns := testkit.NS(t, "clock")
	for _, year := range []int{1970, 2090} {
		cmd := exec.Command(os.Args[0])
		var out bytes.Buffer
		cmd.Env, cmd.Stdout = append(os.Environ(), sayVar+"=1"), &out
		if err := Start(t, ns, cmd, Showing(time.Date(year, 6, 1, 0, 0, 0, 0, time.UTC))); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil || out.String() != fmt.Sprint(year) {
			t.Errorf("the program's year is %q, and not %d: %v", out.String(), year, err)
		}
	}
	if time.Now().Year() < 2026 {
		t.Error("the test's own clock is another one now")
	}
}
