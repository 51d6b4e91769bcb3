package proxy

import (
	"encoding/binary"
	"net/http/httptest"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	agentv1 "heddle/api/heddle/agent/v1"
	"heddle/internal/platform/access/roles"
)

// message is one message of a stream.
func message(t *testing.T, flags byte, marshal func(proto.Message) ([]byte, error), m proto.Message) []byte {
	t.Helper()
	body, err := marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	head := make([]byte, envelope)
	head[0] = flags
	binary.BigEndian.PutUint32(head[1:], uint32(len(body)))
	return append(head, body...)
}

// A capture is known by its number from the first message of its answer on, in whatever pieces that comes and in both
// codecs, until it ends; then, on another host and by another number it may be about anything.
func TestCaptures_AreKnownByTheirNumbers(t *testing.T) {
	m := &agentv1.CaptureResponse{Event: &agentv1.CaptureResponse_Started{Started: &agentv1.CaptureStarted{Id: 7}}}
	web := []roles.Scope{{Switch: "dvs", PortGroup: "web"}}
	for kind, marshal := range map[string]func(proto.Message) ([]byte, error){
		"application/connect+proto": proto.Marshal, "application/connect+json": protojson.Marshal,
	} {
		for _, piece := range []int{1, 3, 1 << 10} {
			cs := &Captures{}
			c := cs.Begin("esx1", "ann", web)
			to := httptest.NewRecorder()
			w := c.Watch(to)
			w.Header().Set("Content-Type", kind)
			sent := append(message(t, 0, marshal, m), "what follows"...)
			if parts, mine := cs.Ending("esx1", 0, "ann"); parts != nil || mine {
				t.Errorf("%s: a capture without a number is known: %v, %v", kind, parts, mine)
			}
			for part := range slices.Chunk(sent, piece) {
				if n, err := w.Write(part); err != nil || n != len(part) {
					t.Fatalf("wrote %d of %d: %v", n, len(part), err)
				}
			}
			if to.Body.String() != string(sent) {
				t.Errorf("%s: passed on %q, want %q", kind, to.Body, sent)
			}
			for _, row := range []struct {
				host, who string
				id        uint64
				parts     []roles.Scope
				mine      bool
			}{{"esx1", "ann", 7, web, true}, {"esx1", "bob", 7, web, false}, {"esx1", "ann", 8, nil, false},
				{"esx2", "ann", 7, nil, false}} {
				parts, mine := cs.Ending(row.host, row.id, row.who)
				if !slices.Equal(parts, row.parts) || mine != row.mine {
					t.Errorf("%s in pieces of %d: %s, %s, %d: %v, %v", kind, piece, row.host, row.who, row.id, parts,
						mine)
				}
			}
			c.End()
			if parts, mine := cs.Ending("esx1", 7, "ann"); parts != nil || mine {
				t.Errorf("%s: it is known after its end: %v, %v", kind, parts, mine)
			}
		}
	}
}

// An answer that makes no sense is passed on, and its capture is known by no number.
func TestCaptures_OfSenselessAnswersAreNotKnown(t *testing.T) {
	large := make([]byte, 5, 1<<20)
	binary.BigEndian.PutUint32(large[1:], 1<<31)
	started := &agentv1.CaptureResponse{Event: &agentv1.CaptureResponse_Started{
		Started: &agentv1.CaptureStarted{Id: 7}}}
	for name, sent := range map[string][]byte{
		"nothing": nil, "a piece of a head": {0, 0}, "very large": large[:cap(large)], "compressed": message(t, 1,
			proto.Marshal, started), "no message": {0, 0, 0, 0, 2, 0xff, 0xff},
	} {
		cs := &Captures{}
		to := httptest.NewRecorder()
		w := cs.Begin("esx1", "ann", nil).Watch(to)
		w.Header().Set("Content-Type", "application/connect+proto")
		if _, err := w.Write(sent); err != nil || to.Body.Len() != len(sent) {
			t.Errorf("%s: %d of %d bytes are passed on: %v", name, to.Body.Len(), len(sent), err)
		}
		if _, mine := cs.Ending("esx1", 7, "ann"); mine {
			t.Errorf("%s: it is known by a number", name)
		}
	}
}
