package kernels

import (
	"os"
	"testing"

	"heddle/internal/qemu"
	"heddle/internal/qemu/image"
)

// guestMemoryMB is enough for the tables at their full size twice, and for tests that keep long streams.
const guestMemoryMB = 3000

// long are the tests of package kerneltest that take minutes under emulation.
const long = "TestAStreamLosesNothingWhilePlansAndProgramsChange|TestS94_RandomFramesOnRealDevicesDoWhatTheModelSays|TestOffloadedFramesCrossWholeAndChecksumsStayRight|" +
	"TestAChangedPolicyIsInForceForAllPortsAtOneInstant|TestS96_TheKernelGoesOnWithoutTheAgentAndTheNextOneAdopts"

// absent are those that need a program which guests do not have: tcpdump, against which the filters of captures are held.
const absent = "TestFiltersMatchWhatTcpdumpMatches"

// TestKernel_ProgramsDoTheSame runs the tests of the kernel programs, frame by frame, and of the whole agent on each kernel.
func TestKernel_ProgramsDoTheSame(t *testing.T) {
	forEachKernel(t, func(t *testing.T, img *image.Image) {
		g := boot(t, img, qemu.Options{MemoryMB: guestMemoryMB}, heddle, smokeTests, kernelTests)
		skip := "-test.skip '" + long + "|" + absent + "'"
		if os.Getenv(allVar) != "" {
			skip = "-test.skip '" + absent + "'"
		}
		t.Run("smoke", func(t *testing.T) { g.in(t).test(smokeTests, "") })
		t.Run("programs", func(t *testing.T) { g.in(t).test(kernelTests, skip) })
	})
}
