package budget

import (
	"bufio"
	"fmt"
	"net"
	"os"
)

// SocketVar is the environment variable with the path of the runner's socket. Without it nothing is bounded: a test
// that somebody runs by hand waits for nobody.
const SocketVar = "HEDDLE_TEST_BUDGET"

// Take waits until the budget has room for weight, and takes it. release gives it back; so does the end of the
// process, however it ends. A weight above the whole budget is taken as the whole of it.
func Take(weight int) (release func(), err error) {
	path := os.Getenv(SocketVar)
	if path == "" || weight <= 0 {
		return func() {}, nil
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		return nil, fmt.Errorf("ask the runner of the tests for room: %w", err)
	}
	_, err = fmt.Fprintf(conn, "%d\n", weight)
	if err == nil {
		_, err = bufio.NewReader(conn).ReadString('\n')
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("ask the runner of the tests for room: %w", err)
	}
	return func() { conn.Close() }, nil
}
