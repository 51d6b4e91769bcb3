package migration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"

	"heddle/internal/lab/traffic"
)

// The guest's own ends of the load are processes of this program in the guest, which go with it from host to host.

// serve starts a server in the guest that stays, and returns the addresses where it listens.
func (v *voyage) serve(ctx context.Context, name, flags string) ([]string, error) {
	out, err := v.at.do(ctx, "cd /tmp; (sleep 1000000 | %s traffic sink %s --listen %s:0 >%s 2>&1) >/dev/null 2>&1 &\n"+
		"until [ -s /tmp/%[4]s ]; do usleep 20000; done; head -n 1 /tmp/%[4]s", guestProgram, flags, guestIP, name)
	if err != nil {
		return nil, err
	}
	return listening(out)
}

// listening reads the first line of a sink.
func listening(line string) ([]string, error) {
	var at struct{ Sessions []netip.AddrPort }
	if err := json.Unmarshal([]byte(line), &at); err != nil || len(at.Sessions) == 0 {
		return nil, errors.Join(fmt.Errorf("a server in the guest did not start: %q", line), err)
	}
	var list []string
	for _, a := range at.Sessions {
		list = append(list, a.String())
	}
	return list, nil
}

// laden is the load of one move of a real guest.
type laden struct {
	*running
}

// start starts the load: numbered packets each way, pings and the bulk transfer.
func (v *voyage) start(ctx context.Context) (_ *laden, err error) {
	l := &laden{&running{sent: make(chan error, 2)}}
	send, stop := context.WithCancel(ctx)
	l.stop = stop
	defer func() {
		if err != nil {
			err = errors.Join(err, l.running.finish(&move{}))
		}
	}()
	l.out, err = traffic.Listen(traffic.Endpoint{NS: v.s.nodes[v.net.far]},
		traffic.SinkOptions{Kind: traffic.KindUDP, At: addrPort(outsideIP, 0), Stamped: true})
	if err != nil {
		return l, err
	}
	line, err := v.at.do(ctx, `cd /tmp; rm -f until in out; mkfifo until
(cat until | %s traffic sink --kind udp --listen %s:0 >in 2>&1) >/dev/null 2>&1 &
%[1]s traffic udp --rate %[3]g --duration 0 --to %[4]s >out 2>&1 & echo $! >sender
until [ -s in ]; do usleep 20000; done; head -n 1 in`, guestProgram, guestIP, v.effort.rate, l.out.Addr())
	if err != nil {
		return l, err
	}
	to, err := listening(line)
	if err != nil {
		return l, err
	}
	sink, err := netip.ParseAddrPort(to[0])
	if err != nil {
		return l, err
	}
	for _, load := range []struct {
		traffic.Load
		to   netip.AddrPort
		into *traffic.Result
	}{{traffic.Load{Kind: traffic.KindUDP, Rate: v.effort.rate}, sink, &traffic.Result{}},
		{traffic.Load{Kind: traffic.KindEcho, Rate: pingRate}, addrPort(guestIP, 0), &l.pings}} {
		l.send(func() (err error) {
			*load.into, err = traffic.Send(send, traffic.Endpoint{NS: v.s.nodes[v.net.far]}, load.Load, load.to)
			return err
		})
	}
	l.bulk, err = callBulk(ctx, v.s.nodes[v.net.far], v.bulk, v.effort.bulk)
	return l, err
}

// finish ends the load and adds what it found; the guest is where it runs now.
func (l *laden) finish(ctx context.Context, at *machine, one *move) error {
	settled := l.settle()
	text, err := at.do(ctx, `cd /tmp; kill -INT $(cat sender)
until [ -s out ]; do usleep 20000; done
: >until; until [ $(wc -l <in) -ge 2 ]; do usleep 20000; done; tail -n 1 in`)
	var sink traffic.SinkResult
	if err == nil {
		err = json.Unmarshal([]byte(text), &sink)
	}
	if err == nil && sink.Packets == nil {
		err = fmt.Errorf("the guest counted no packets: %s", text)
	}
	err = errors.Join(settled, err, l.running.finish(one))
	if err == nil {
		one.in = *sink.Packets
		one.overflowed += one.in.Overflowed
		one.duplicated += one.in.Duplicated
	}
	return err
}
