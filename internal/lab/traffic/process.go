package traffic

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Processes measures with a process per end, so that neither shares a Go runtime with the other or with the caller.
type Processes struct {
	// Program is the command line up to and including "traffic", such as {"/usr/bin/heddle", "traffic"}.
	Program []string
	// Nice is the priority of the processes, 0–19: a higher number gives others priority (nice(2)). Each is then a
	// session of its own, because the kernel may divide CPU time by session (sched(7), autogroup).
	Nice int
	// Env is added to the environment of the processes.
	Env []string
}

// exitPatience is how long an end may take to exit after its work, in addition to the time that it has to wait: on a
// machine that is busy with something else, it gets to that late.
const exitPatience = 30 * time.Second

// Measure is like the function Measure. When the context ends, both processes are killed.
func (p Processes) Measure(ctx context.Context, pair Pair, load Load) (Result, error) {
	load, err := load.withDefaults()
	if err != nil {
		return Result{}, err
	}
	if load.Duration == 0 {
		return Result{}, errors.New("a measurement by processes needs a duration")
	}
	if load.Kind.alone() {
		return p.send(ctx, pair.Client, load, []netip.AddrPort{netip.AddrPortFrom(pair.Addr, 0)})
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	opts := load.sink(pair.Addr)
	sink, err := p.sink(ctx, pair.Server, opts, load.Sessions)
	if err != nil {
		return Result{}, err
	}
	res, err := p.send(ctx, pair.Client, load, reached(sink.addrs, pair.Addr))
	if err != nil {
		cancel()
		_, _ = sink.finish()
		return Result{}, err
	}
	res.Sink, err = sink.finish()
	return res, err
}

// command prepares a process for the end. It is in a process group of its own, so that Ctrl-C reaches it only through
// the context.
func (p Processes) command(ctx context.Context, args, more []string) (*exec.Cmd, *bytes.Buffer) {
	all := append(append(append([]string{}, p.Program[1:]...), args...), more...)
	cmd := exec.CommandContext(ctx, p.Program[0], all...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if p.Nice != 0 {
		cmd.Args = append(cmd.Args, "--nice", strconv.Itoa(p.Nice))
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	}
	cmd.Env = append(cmd.Environ(), p.Env...)
	cmd.WaitDelay = exitPatience
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	return cmd, &stderr
}

func (e Endpoint) start(cmd *exec.Cmd) error {
	if e.NS != nil {
		return e.NS.Start(cmd)
	}
	return cmd.Start()
}

func (p Processes) send(ctx context.Context, e Endpoint, load Load, to []netip.AddrPort) (Result, error) {
	limit := load.Warmup + load.Duration + connectPatience + echoPatience + exitPatience
	if wait := time.Until(load.Begin); wait > 0 {
		limit += wait
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd, stderr := p.command(ctx, load.Args(to), e.args())
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	if err := e.start(cmd); err != nil {
		return Result{}, fmt.Errorf("start %s sender: %w", load.Kind, err)
	}
	if err := cmd.Wait(); err != nil {
		if ctx.Err() != nil {
			return Result{}, fmt.Errorf("%s to %v: %w", load.Kind, to, ctx.Err())
		}
		return Result{}, fmt.Errorf("%s sender: %w: %s", load.Kind, err, strings.TrimSpace(stderr.String()))
	}
	var res Result
	if err := json.Unmarshal(stdout.Bytes(), &res); err != nil {
		return Result{}, fmt.Errorf("%s sender printed %q: %w", load.Kind, stdout.String(), err)
	}
	return res, nil
}

// sinkProcess is a running sink.
type sinkProcess struct {
	cmd    *exec.Cmd
	stdin  io.Closer
	out    *bufio.Reader
	stderr *bytes.Buffer
	addrs  []netip.AddrPort
}

func (p Processes) sink(ctx context.Context, e Endpoint, opts SinkOptions, sessions int) (*sinkProcess, error) {
	s := &sinkProcess{}
	s.cmd, s.stderr = p.command(ctx, append(opts.Args(), "--sessions", strconv.Itoa(max(sessions, 1))), e.args())
	stdin, err := s.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.stdin, s.out = stdin, bufio.NewReader(stdout)
	if err := e.start(s.cmd); err != nil {
		return nil, fmt.Errorf("start %s sink: %w", opts.Kind, err)
	}
	var hello listening
	if err := s.line(&hello); err != nil {
		_, _ = s.finish()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("%s sink: %w: %s", opts.Kind, err, strings.TrimSpace(s.stderr.String()))
	}
	s.addrs = hello.Sessions
	return s, nil
}

// line reads the next line of output. It ends at the latest when the process does.
func (s *sinkProcess) line(into any) error {
	text, err := s.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("read its output: %w", err)
	}
	return json.Unmarshal(text, into)
}

// finish ends the sink and returns its result.
func (s *sinkProcess) finish() (*SinkResult, error) {
	_ = s.stdin.Close() // a second close, or one of a killed process's pipe, changes nothing
	stuck := time.AfterFunc(exitPatience, func() { _ = s.cmd.Process.Kill() })
	defer stuck.Stop()
	var res SinkResult
	readErr := s.line(&res)
	if err := s.cmd.Wait(); err != nil {
		return nil, fmt.Errorf("sink: %w: %s", err, strings.TrimSpace(s.stderr.String()))
	}
	if readErr != nil {
		return nil, fmt.Errorf("sink: %w", readErr)
	}
	return &res, nil
}
