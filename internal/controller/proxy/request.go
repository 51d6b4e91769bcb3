package proxy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"mime"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	agentv1 "heddle/api/heddle/agent/v1"
	"heddle/internal/api/wire"
)

// streams is what the content type of a stream begins with; without it a body is one message.
const streams = "application/connect+"

// envelope is how long the head of a message of a stream is: a byte of flags and the length.
const envelope = 5

// Request reads the one message of a request. One with a field that the schema does not have is refused: the caller
// could rely on what would be ignored.
func Request(contentType string, body []byte, into proto.Message) error {
	if err := decode(contentType, body, into, protojson.UnmarshalOptions{}); err != nil {
		return err
	}
	if what := wire.Unknown(into); what != "" {
		return fmt.Errorf("this controller does not know %s, which the request has: update the controllers", what)
	}
	return nil
}

// answer reads the first message of an answer, in which a host that is newer may say more.
func answer(contentType string, body []byte, into proto.Message) error {
	return decode(contentType, body, into, protojson.UnmarshalOptions{DiscardUnknown: true})
}

// decode reads one message, in JSON as the options say.
func decode(contentType string, body []byte, into proto.Message, o protojson.UnmarshalOptions) error {
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return fmt.Errorf("the content type: %w", err)
	}
	codec, stream := strings.CutPrefix(kind, streams)
	if stream {
		if len(body) < envelope || int64(binary.BigEndian.Uint32(body[1:])) != int64(len(body)-envelope) {
			return errors.New("the request is not one whole message")
		}
		if body[0] != 0 {
			return errors.New("the request is compressed, which nobody needs")
		}
		body = body[envelope:]
	} else {
		codec = strings.TrimPrefix(kind, "application/")
	}
	switch codec {
	case "proto":
		return proto.Unmarshal(body, into)
	case "json":
		if len(body) == 0 {
			return nil
		}
		return o.Unmarshal(body, into)
	}
	return fmt.Errorf("a request of the kind %.40q is none of this contract", kind)
}

// CapturedPorts are the ports whose frames a capture is about, by their names; ok is false where it may be about any:
// about uplinks, segments and the outer packets of a tunnel everybody's frames are.
func CapturedPorts(q *agentv1.CaptureRequest) (sw string, ports []string, ok bool) {
	ok = len(q.GetPorts()) > 0 && len(q.GetUplinks()) == 0 && len(q.GetSegments()) == 0 && !q.GetOuter()
	return q.GetSwitch(), q.GetPorts(), ok
}
