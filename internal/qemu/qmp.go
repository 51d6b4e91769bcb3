package qemu

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// Event is an asynchronous message from QEMU, like STOP, RESUME or NIC_RX_FILTER_CHANGED.
type Event struct {
	Name string
	Data json.RawMessage
	Time time.Time // QEMU's own stamp
}

// qmp speaks QEMU's machine protocol (docs/interop/qmp-spec) over one connection.
type qmp struct {
	conn    net.Conn
	onEvent func(Event)
	write   sync.Mutex

	mu      sync.Mutex
	next    uint64
	pending map[uint64]chan qmpMessage
	dead    error // set when the connection ended
}

// qmpMessage is any message that QEMU sends.
type qmpMessage struct {
	QMP    json.RawMessage `json:"QMP"`
	ID     *uint64         `json:"id"`
	Return json.RawMessage `json:"return"`
	Error  *struct {
		Class string `json:"class"`
		Desc  string `json:"desc"`
	} `json:"error"`
	Event     string          `json:"event"`
	Data      json.RawMessage `json:"data"`
	Timestamp struct {
		Seconds      int64 `json:"seconds"`
		Microseconds int64 `json:"microseconds"`
	} `json:"timestamp"`
}

// newQMP takes over the connection and leaves negotiation mode.
func newQMP(ctx context.Context, conn net.Conn, onEvent func(Event)) (*qmp, error) {
	q := &qmp{conn: conn, onEvent: onEvent, pending: map[uint64]chan qmpMessage{}}
	go q.read()
	// QEMU accepts commands before its greeting has been read.
	if _, err := q.command(ctx, "qmp_capabilities", nil); err != nil {
		conn.Close()
		return nil, err
	}
	return q, nil
}

// read hands out answers and events until the connection ends.
func (q *qmp) read() {
	dec := json.NewDecoder(q.conn)
	for {
		var m qmpMessage
		if err := dec.Decode(&m); err != nil {
			q.fail(err)
			return
		}
		switch {
		case m.Event != "" && q.onEvent != nil:
			stamp := time.Unix(m.Timestamp.Seconds, m.Timestamp.Microseconds*1000)
			q.onEvent(Event{Name: m.Event, Data: m.Data, Time: stamp})
		case m.ID != nil:
			q.mu.Lock()
			answer := q.pending[*m.ID]
			delete(q.pending, *m.ID)
			q.mu.Unlock()
			if answer != nil {
				answer <- m
			}
		}
	}
}

// fail ends all who wait.
func (q *qmp) fail(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.dead = errors.Join(errors.New("QEMU closed its control connection"), err)
	for id, answer := range q.pending {
		close(answer)
		delete(q.pending, id)
	}
}

// command runs one command and gives its "return" value.
func (q *qmp) command(ctx context.Context, name string, args any) (json.RawMessage, error) {
	answer := make(chan qmpMessage, 1)
	q.mu.Lock()
	if q.dead != nil {
		q.mu.Unlock()
		return nil, q.dead
	}
	q.next++
	id := q.next
	q.pending[id] = answer
	q.mu.Unlock()
	defer func() {
		q.mu.Lock()
		delete(q.pending, id)
		q.mu.Unlock()
	}()
	if err := q.send(id, name, args); err != nil {
		return nil, err
	}
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("QMP %s: %w", name, ctx.Err())
	case m, ok := <-answer:
		switch {
		case !ok:
			return nil, fmt.Errorf("QMP %s: QEMU ended", name)
		case m.Error != nil:
			return nil, fmt.Errorf("QMP %s: %s: %s", name, m.Error.Class, m.Error.Desc)
		}
		return m.Return, nil
	}
}

// send writes one command.
func (q *qmp) send(id uint64, name string, args any) error {
	line, err := json.Marshal(struct {
		Execute   string `json:"execute"`
		Arguments any    `json:"arguments,omitempty"`
		ID        uint64 `json:"id"`
	}{name, args, id})
	if err != nil {
		return fmt.Errorf("QMP %s: arguments: %w", name, err)
	}
	q.write.Lock()
	defer q.write.Unlock()
	if err := q.conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return fmt.Errorf("QMP %s: %w", name, err)
	}
	if _, err := q.conn.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("QMP %s: %w", name, err)
	}
	return nil
}
