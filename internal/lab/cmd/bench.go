package cmd

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"heddle/internal/lab/bench"
	"heddle/internal/lab/bench/controlplane"
	"heddle/internal/lab/bench/flowexport"
	"heddle/internal/lab/report"
)

// BenchSwitch compares Heddle with other ways of joining two guests.
func BenchSwitch(ctx context.Context, o bench.SwitchOptions) (*report.Report, error) {
	self, err := readyToMeasure(o.Check(), "bench switch makes network namespaces and devices")
	if err != nil {
		return nil, err
	}
	o.Heddle = []string{self}
	return toTheEnd(ctx, func(ctx context.Context) (*report.Report, error) { return bench.Switch(ctx, o) })
}

// BenchOverlay compares an overlay segment with other ways of joining guests of two hosts.
func BenchOverlay(ctx context.Context, o bench.OverlayOptions) (*report.Report, error) {
	self, err := readyToMeasure(o.Check(), "bench overlay makes network namespaces and devices")
	if err != nil {
		return nil, err
	}
	o.Heddle = []string{self}
	return toTheEnd(ctx, func(ctx context.Context) (*report.Report, error) { return bench.Overlay(ctx, o) })
}

// BenchFrame measures the kernel time of the switch program per frame.
func BenchFrame(ctx context.Context, o bench.FrameOptions) (*report.Report, error) {
	if _, err := readyToMeasure(nil, "bench frame loads programs into the kernel"); err != nil {
		return nil, err
	}
	return toTheEnd(ctx, func(ctx context.Context) (*report.Report, error) { return bench.Frame(ctx, o) })
}

// BenchMetrics measures how long a scrape of the metrics takes.
func BenchMetrics(ctx context.Context, o bench.MetricsOptions) (*report.Report, error) {
	self, err := readyToMeasure(nil, "bench metrics runs an agent in a network namespace")
	if err != nil {
		return nil, err
	}
	o.Heddle = []string{self}
	return toTheEnd(ctx, func(ctx context.Context) (*report.Report, error) { return bench.Metrics(ctx, o) })
}

// BenchCapture measures what a capture costs the ports.
func BenchCapture(ctx context.Context, o bench.CaptureOptions) (*report.Report, error) {
	self, err := readyToMeasure(o.Check(), "bench capture makes network namespaces and devices")
	if err != nil {
		return nil, err
	}
	o.Heddle = []string{self}
	return toTheEnd(ctx, func(ctx context.Context) (*report.Report, error) { return bench.Capture(ctx, o) })
}

// BenchFlowExport measures what metering and export of flows cost.
func BenchFlowExport(ctx context.Context, o flowexport.Options) (_ *report.Report, err error) {
	if o.Heddle, err = readyToMeasure(o.Check(), "bench flow-export makes network namespaces and devices"); err != nil {
		return nil, err
	}
	return toTheEnd(ctx, func(ctx context.Context) (*report.Report, error) { return flowexport.Run(ctx, o) })
}

// BenchControlPlane measures a controller with many hosts. program is the controller's, "" for the one beside this
// program. It takes no root.
func BenchControlPlane(ctx context.Context, o controlplane.Options, program string) (*report.Report, error) {
	if err := o.Check(); err != nil {
		return nil, &Fault{err}
	}
	var err error
	if o.Controller, err = controllerToMeasure(program); err != nil {
		return nil, err
	}
	return toTheEnd(ctx, func(ctx context.Context) (*report.Report, error) { return controlplane.Run(ctx, o) })
}

// BenchAgent measures the memory of an agent below a controller; program is as for BenchControlPlane.
func BenchAgent(ctx context.Context, o controlplane.AgentOptions, program string) (*report.Report, error) {
	self, err := readyToMeasure(o.Check(), "bench control-plane --agent makes network namespaces and devices")
	if err != nil {
		return nil, err
	}
	o.Heddle = []string{self}
	if o.Controller, err = controllerToMeasure(program); err != nil {
		return nil, err
	}
	return toTheEnd(ctx, func(ctx context.Context) (*report.Report, error) { return controlplane.RunAgent(ctx, o) })
}

// controllerToMeasure is the program of the controller.
func controllerToMeasure(program string) ([]string, error) {
	if program == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		program = filepath.Join(filepath.Dir(self), "heddle-controller")
	}
	if _, err := exec.LookPath(program); err != nil {
		return nil, fmt.Errorf("there is no controller to measure: %w; give its program with --controller-program", err)
	}
	return []string{program}, nil
}

// BenchCodec measures how many flow records a second a core writes, sends and reads. It takes no root.
func BenchCodec(ctx context.Context, o bench.CodecOptions) (*report.Report, error) {
	if err := o.Check(); err != nil {
		return nil, &Fault{err}
	}
	return toTheEnd(ctx, func(ctx context.Context) (*report.Report, error) { return bench.Codec(ctx, o) })
}

// readyToMeasure turns faults of the options into a Fault, requires root, and returns the path of this program.
func readyToMeasure(wrong error, what string) (self string, err error) {
	if wrong != nil {
		return "", &Fault{wrong}
	}
	if os.Geteuid() != 0 {
		return "", fmt.Errorf("%s: run it as root", what)
	}
	return os.Executable()
}
