package powercut

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Change is something that a program writes, made by a child of the test.
type Change struct {
	Name string
	// Left is what a start makes of what is in the directory.
	Left func(dir string) (string, error)
	// Tidies: it has more to do when a start reads it, such as to remove what is not needed any more. An error of that
	// says that the change is there.
	Tidies bool
	// Same: a start makes the same of what was there before it, after it and in between.
	Same bool
}

// child names, in the environment of a child, what it writes and where.
const child = "HEDDLE_TEST_POWERCUT"

// Child makes the change that the parent asks for, when it is told to, and says whether that was acknowledged. prepare
// makes what is there before, and returns the change. In a process that is no child it does nothing.
func Child(t *testing.T, prepare func(name, dir string) (change func() error, err error)) {
	name, dir, is := strings.Cut(os.Getenv(child), "|")
	if !is {
		return
	}
	change, err := prepare(name, dir)
	out := os.NewFile(3, "answers")
	if err != nil {
		fmt.Fprintln(out, "unprepared:", err)
		return
	}
	fmt.Fprintln(out, "ready")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if err := change(); err != nil {
		fmt.Fprintln(out, "refused:", err)
		return
	}
	fmt.Fprintln(out, "acknowledged")
}

// Walk has a child make a change again and again, and takes the power at each of its steps: whatever step that is, a
// start makes of what is left what was there before, or the whole change; what was acknowledged is there. test is the
// child's test, which calls Child.
func (d *Disk) Walk(t *testing.T, test string, c Change) {
	t.Helper()
	d.enter(t)
	steps, answer, before, after := d.run(t, test, c, 0)
	if answer != "acknowledged" || (after == before) != c.Same || len(steps) == 0 {
		t.Fatalf("acknowledged and cut off: %s after %q; the restart reads\n%s\nbefore it was\n%s", answer, steps,
			after, before)
	}
	for at := 1; at <= len(steps); at++ {
		made, said, was, left := d.run(t, test, c, at)
		switch {
		case left != was && left != after:
			t.Errorf("cut before step %d (%s): the restart reads\n%s", at, steps[at-1], left)
		case said == "acknowledged" && left != after:
			t.Errorf("cut before step %d of %q: acknowledged, and the restart reads what was before", at, made)
		case said != "acknowledged" && said != "" && left != was && !c.Tidies:
			t.Errorf("cut before step %d of %q: %s, and the restart reads the change", at, made, said)
		}
	}
}

// run has a child make a change, and takes the power ahead of the step of that number, or when the child has answered.
func (d *Disk) run(t *testing.T, test string, c Change, at int) (steps []string, answer, before, after string) {
	t.Helper()
	dir := filepath.Join(d.Dir, "state")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	left := func() string {
		text, err := c.Left(dir)
		if err != nil {
			t.Errorf("what is left is not whole: %v", err)
		}
		return text
	}
	answers, says, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer answers.Close()
	cmd := exec.Command(os.Args[0], "-test.run=^"+test+"$")
	cmd.Env, cmd.ExtraFiles = append(os.Environ(), child+"="+c.Name+"|"+dir), []*os.File{says}
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	begin, err := cmd.StdinPipe()
	if err = errors.Join(err, cmd.Start(), says.Close()); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(answers)
	if line, err := lines.ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("the child: %q, %v", line, err)
	}
	unix.Sync()
	before = left()
	err = Follow(cmd.Process.Pid, dir, func() error {
		_, err := begin.Write([]byte("go\n"))
		return err
	}, func(step string) error {
		if steps = append(steps, step); len(steps) == at {
			return d.cut()
		}
		return nil
	})
	if err != nil {
		t.Fatal(errors.Join(err, cmd.Process.Kill(), cmd.Wait()))
	}
	answer, err = lines.ReadString('\n')
	if errWait := cmd.Wait(); err != nil { // a process that died has acknowledged nothing
		answer = ""
		t.Logf("the child did not answer: %v, %v\n%s", err, errWait, &output)
	}
	if len(steps) < at || at == 0 { // the power goes as soon as the change was acknowledged
		if err := d.cut(); err != nil {
			t.Fatal(err)
		}
	}
	d.again(t)
	return steps, strings.TrimSpace(answer), before, left()
}
