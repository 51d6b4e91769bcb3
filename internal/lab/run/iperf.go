package run

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"heddle/internal/lab/netns"
	"heddle/internal/lab/traffic"
)

// errNoIperf: iperf3 is not installed.
var errNoIperf = errors.New("iperf3 is not installed")

// iperfPort is iperf3's default; it runs in namespaces where nothing else listens.
const iperfPort = "5201"

// iperfResult is the result of a run of iperf3.
type iperfResult struct {
	bitsPerSecond float64 // received
	bytes         float64 // received
	retransmits   uint64
}

// iperf runs an iperf3 server and client between the two ends.
func iperf(ctx context.Context, p traffic.Pair, d time.Duration) (iperfResult, error) {
	if _, err := exec.LookPath("iperf3"); err != nil {
		return iperfResult{}, errNoIperf
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := iperfCommand(ctx, "--server", "--one-off", "--bind", p.Addr.String(), "--port", iperfPort, "--forceflush")
	out, err := server.StdoutPipe()
	if err != nil {
		return iperfResult{}, err
	}
	if err := p.Server.NS.Start(server); err != nil {
		return iperfResult{}, fmt.Errorf("start the iperf3 server: %w", err)
	}
	lines := bufio.NewReader(out)
	err = awaitListening(lines)
	var res iperfResult
	if err == nil {
		res, err = iperfClient(ctx, p.Client.NS, p.Addr.String(), d)
	}
	if ctx.Err() != nil { // the errors of the ends then only follow from that
		res, err = iperfResult{}, ctx.Err()
	}
	if err != nil {
		cancel() // a server without client would wait for ever
	}
	_, _ = io.Copy(io.Discard, lines) // its output repeats the client's; it must not block on a full pipe
	waitErr := server.Wait()
	return res, errors.Join(err, ignoreIf(err != nil, waitErr))
}

// iperfCommand is in a process group of its own: a Ctrl-C reaches it only through ctx, and is not reported as its
// failure.
func iperfCommand(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "iperf3", args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// ignoreIf drops an error that only follows from another.
func ignoreIf(follows bool, err error) error {
	if follows {
		return nil
	}
	return err
}

// awaitListening reads the server's output until it says that it listens.
func awaitListening(lines *bufio.Reader) error {
	var said strings.Builder
	for {
		line, err := lines.ReadString('\n')
		said.WriteString(line)
		if strings.Contains(line, "listening") {
			return nil
		}
		if err != nil {
			return fmt.Errorf("the iperf3 server ended: %s", firstLine(said.String()))
		}
	}
}

func iperfClient(ctx context.Context, ns *netns.NS, addr string, d time.Duration) (iperfResult, error) {
	client := iperfCommand(ctx, "--client", addr, "--port", iperfPort, "--json",
		"--time", strconv.Itoa(max(1, int(d.Seconds()+0.5))))
	var out bytes.Buffer
	client.Stdout = &out
	if err := ns.Start(client); err != nil {
		return iperfResult{}, fmt.Errorf("start the iperf3 client: %w", err)
	}
	waitErr := client.Wait()
	res, err := parseIperf(out.Bytes())
	if err == nil && waitErr != nil {
		err = waitErr
	}
	if err != nil {
		return iperfResult{}, fmt.Errorf("iperf3 to %s: %w", addr, err)
	}
	return res, nil
}

// parseIperf reads the JSON that an iperf3 client prints.
func parseIperf(data []byte) (iperfResult, error) {
	var doc struct {
		Error string `json:"error"`
		End   struct {
			Sent struct {
				Retransmits uint64 `json:"retransmits"`
			} `json:"sum_sent"`
			Received struct {
				Bytes         float64 `json:"bytes"`
				BitsPerSecond float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		} `json:"end"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return iperfResult{}, fmt.Errorf("unreadable output: %w", err)
	}
	if doc.Error != "" {
		return iperfResult{}, errors.New(doc.Error)
	}
	if doc.End.Received.Bytes == 0 {
		return iperfResult{}, errors.New("nothing was received")
	}
	return iperfResult{doc.End.Received.BitsPerSecond, doc.End.Received.Bytes, doc.End.Sent.Retransmits}, nil
}

// firstLine is the first line of a program's error output.
func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}
