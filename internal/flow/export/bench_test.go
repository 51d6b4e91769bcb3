package export

import (
	"fmt"
	"net"
	"testing"

	"heddle/internal/flow/meter"
)

// Encoding records and sending them to a collector on the same host that does not read: the time for each record.
func BenchmarkExport(b *testing.B) {
	for _, shape := range []Shape{Standard, VDS} {
		b.Run(fmt.Sprint(shape), func(b *testing.B) {
			conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
			if err != nil {
				b.Fatal(err)
			}
			defer conn.Close()
			x, err := New(begin, Config{
				Collectors: []Collector{{Address: "127.0.0.1", Port: conn.LocalAddr().(*net.UDPAddr).AddrPort().Port(),
					Shape: shape}}})
			if err != nil {
				b.Fatal(err)
			}
			defer x.Close(begin)
			records, at := many(1024), points()
			x.Tick(begin, func() meter.State { return meter.State{Points: at} })
			b.ReportAllocs()
			b.ResetTimer()
			for n := 0; n < b.N; n += len(records) {
				x.Export(begin, at, records)
			}
		})
	}
}
