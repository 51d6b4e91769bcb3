package kernels

import (
	"os"
	"testing"

	"heddle/internal/lab/qemu"
	"heddle/internal/lab/qemu/image"
)

// guestMemoryMB is enough for the tables at their full size twice, and for tests that keep long streams: some 400 MB
// were seen in use.
const guestMemoryMB = 1500

// long are the tests of package kerneltest that take minutes under emulation, and those of captures that are about the
// reader's side: a capture has the verifier look at 450,000 instructions more, which takes an emulated CPU ten seconds.
const long = "TestCaptureCountsWhatItsReaderLosesAndPortsLoseNothing|TestThereAreOnlySoManyCaptures|" +
	"TestCaptureFollowsItsPortAndNotItsPlace|" +
	"TestAStreamLosesNothingWhilePlansAndProgramsChange|TestS94_RandomFramesOnRealDevicesDoWhatTheModelSays|" +
	"TestOffloadedFramesCrossWholeAndChecksumsStayRight|" +
	"TestAChangedPolicyIsInForceForAllPortsAtOneInstant|TestS96_TheKernelGoesOnWithoutTheAgentAndTheNextOneAdopts"

// absent are those that need a program which guests do not have: tcpdump, against which the filters of captures are
// held.
const absent = "TestFiltersMatchWhatTcpdumpMatches"

// times are those that hold how long something takes against a bound, which an emulated CPU says nothing about.
const times = "^TestTime_"

// TestKernel_ProgramsDoTheSame runs the tests of the kernel programs, frame by frame, and of the whole agent on each
// kernel.
func TestKernel_ProgramsDoTheSame(t *testing.T) {
	forEachKernel(t, func(t *testing.T, img *image.Image) {
		g := boot(t, img, qemu.Options{MemoryMB: guestMemoryMB, Modules: []string{"vxlan"}}, heddle, smokeTests,
			kernelTests)
		skip := "-test.skip '" + long + "|" + absent + "|" + times + "'"
		if os.Getenv(allVar) != "" {
			skip = "-test.skip '" + absent + "|" + times + "'"
		}
		t.Run("smoke", func(t *testing.T) { g.in(t).test(smokeTests, "-test.skip '"+times+"'") })
		t.Run("programs", func(t *testing.T) { g.in(t).test(kernelTests, skip) })
	})
}
