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
const long = "TestAStreamLosesNothingWhilePlansAndProgramsChange|TestS94_RandomFramesOnRealDevicesDoWhatTheModelSays|TestOffloadedFramesCrossWholeAndChecksumsStayRight"

// TestKernel_ProgramsDoTheSame runs the tests of the kernel programs, frame by frame, and of the whole agent on each kernel.
func TestKernel_ProgramsDoTheSame(t *testing.T) {
	forEachKernel(t, func(t *testing.T, img *image.Image) {
		g := boot(t, img, qemu.Options{MemoryMB: guestMemoryMB}, heddle, smokeTests, kernelTests)
		skip := "-test.skip '" + long + "'"
		if os.Getenv(allVar) != "" {
			skip = ""
		}
		t.Run("smoke", func(t *testing.T) { g.in(t).test(smokeTests, "") })
		t.Run("programs", func(t *testing.T) { g.in(t).test(kernelTests, skip) })
	})
}
