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

// storms are those in which a guest's bridge sends as fast as it can: an emulated CPU has nothing left for anybody else
// then, and guests have no bridge module, as the tests with a physical switch between two hosts need one too, those
// with a controller among them. They run on this machine's own kernel.
const storms = "TestS85_|TestS81_AHostPortOf|TestS81_AHostThatADefinition|TestS81_ARevertedVersion|TestS83_|" +
	"TestS101_|TestS102_|TestS84_|TestImportVsphere_|" +
	"TestS103_|TestS10_AStatic|TestS77_|TestS78_|TestS79_AStaticPortFollows|TestHostPorts_|TestS9_WhatTheDefinition|" +
	"TestS105_|TestS112_|TestS100_S105_|" +
	"TestS104_AHostBinds|TestAHostHandsItsSwitchOver|TestAHostJoinsAndHandsOver|TestLookingAtTheFleet|" +
	"TestTheRootIsRotated|TestControllersShareAnEtcd|TestS104_IdleConnections|TestS100_APortMoves|" +
	"TestS100_AMoveCompletes|TestS100_S103_AMoveThatEnds|TestS100_S103_AHostThatBoots|" +
	"TestS100_ThePageForManagers|TestS79_S83_S100_|TestS100_AMACThatFlaps|TestS99_S100_Proxmox|TestS82_|" +
	"TestS110_AGuestThatBridges|" +
	"TestS110_TwoGuestsThatJoin|TestS110_ACableBetweenPorts|" +
	"TestS110_ProbesThatGuestsSend|" +
	"TestS109_|TestS110_LACPOfAGuest|TestS110_ReflectedFrames|TestS110_AnAddressThatMoves"

// TestKernel_ProgramsDoTheSame runs the tests of the kernel programs, frame by frame, and of the whole agent on each
// kernel.
func TestKernel_ProgramsDoTheSame(t *testing.T) {
	forEachKernel(t, func(t *testing.T, img *image.Image) {
		g := boot(t, img, qemu.Options{MemoryMB: guestMemoryMB}, heddle, smokeTests, kernelTests)
		skip := "-test.skip '" + long + "|" + absent + "|" + times + "'"
		if os.Getenv(allVar) != "" {
			skip = "-test.skip '" + absent + "|" + times + "'"
		}
		t.Run("smoke", func(t *testing.T) { g.in(t).test(smokeTests, "-test.skip '"+storms+"|"+times+"'") })
		t.Run("programs", func(t *testing.T) { g.in(t).test(kernelTests, skip) })
	})
}
