package kernels

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"heddle/internal/dataplane"
	"heddle/internal/dev/verifier"
	"heddle/internal/lab/qemu"
	"heddle/internal/lab/qemu/image"
	"heddle/internal/test/testkit"
)

// verifierLimit is how many instructions the kernel's verifier looks at before it gives up
// (BPF_COMPLEXITY_LIMIT_INSNS).
const verifierLimit = 1_000_000

// trialBudget builds the program that loads all kernel programs and prints their costs, with six more stages in the
// switch: testdata/trial_receiver.h says what they do. The product never has them.
func trialBudget(t *testing.T) (path string) {
	t.Helper()
	testkit.Tool(t, "clang-19", "go")
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	dir, bpf, replace := t.TempDir(), filepath.Join(root, "bpf"), map[string]string{}
	for built, source := range map[string]string{"vswitch_bpfel.o": "switch.bpf.c",
		"capturing_bpfel.o": "capturing.bpf.c"} {
		object := filepath.Join(dir, built)
		replace[filepath.Join(root, "internal/dataplane", built)] = object
		run(t, "clang-19", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-Wno-unused-function",
			"-target", "bpfel", "-mcpu=v3", "-DTRIAL_STAGES", "-I", bpf, "-I", "testdata",
			"-c", filepath.Join(bpf, source), "-o", object)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(dir, "trial-budget")
	run(t, "go", "build", "-overlay", list, "-o", path, "heddle/internal/dev/verifier/cmd/verifier-budget")
	return path
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
}

// checkTrial reads what the program said about its kernel's verifier.
func checkTrial(t *testing.T, said []byte) {
	t.Helper()
	var m verifier.Measured
	if err := json.Unmarshal(said, &m); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	for _, name := range []string{"heddle_ingress", "heddle_ingress_or", "heddle_ingress_capturing", "heddle_record"} {
		i := slices.IndexFunc(m.Programs, func(p dataplane.ProgramCost) bool { return p.Program == name })
		if i < 0 {
			t.Fatalf("kernel %s: %s is not among the programs: %+v", m.Release, name, m.Programs)
		}
		p := m.Programs[i]
		t.Logf("kernel %s: %s: %d bytes of stack (%d before 6.8), %d instructions, %d looked at", m.Release,
			name, p.Stack, p.OldStack, p.Instructions, p.Processed)
		if p.Stack > dataplane.StackLimit || p.OldStack > dataplane.StackLimit || p.Processed > verifierLimit/2 {
			t.Errorf("kernel %s: %s needs %d bytes of stack (%d on kernels before 6.8) of %d, and the verifier looks "+
				"at %d instructions of %d: with six more stages at most half of those may be used", m.Release, name,
				p.Stack, p.OldStack, dataplane.StackLimit, p.Processed, verifierLimit)
		}
	}
}

// The switch has room for six more stages: with them, every program loads on the running kernel.
func TestSixMoreStagesLoadOnThisKernel(t *testing.T) {
	testkit.Long(t, "builds the kernel programs and a program with them")
	testkit.Root(t)
	var said, failed bytes.Buffer
	cmd := exec.Command(trialBudget(t), "-measure")
	cmd.Stdout, cmd.Stderr = &said, &failed
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, tail(failed.String()))
	}
	checkTrial(t, said.Bytes())
}

// TestKernel_SixMoreStagesLoad: and on each other kernel.
func TestKernel_SixMoreStagesLoad(t *testing.T) {
	forEachKernel(t, func(t *testing.T, img *image.Image) {
		g := boot(t, img, qemu.Options{MemoryMB: 2048, Files: map[string]string{"/bin/trial-budget": trialBudget(t)}})
		r, err := g.Run(t.Context(), "/bin/trial-budget -measure")
		if err != nil || r.ExitCode != 0 {
			t.Fatalf("it ended with %d, %v: %s", r.ExitCode, err, r.Stderr)
		}
		checkTrial(t, []byte(r.Stdout))
	})
}
