package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
	"connectrpc.com/connect/v2/connectproto"
	"google.golang.org/protobuf/proto"

	agentv1 "heddle/api/heddle/agent/v1"
	"heddle/internal/api/wire"
)

// StrictCodecs are the codecs of every server of the contracts. A JSON request with a field that the schema does not
// have is refused: the absence of a field can mean more than its value, such as a dry run or the part of the cluster
// that a token is for, so that a misspelt name must not count as absence.
func StrictCodecs() connecthttp.Option {
	strict := connectproto.NewJSONCodec()
	strict.UnmarshalOptions.DiscardUnknown = false
	return connecthttp.WithCodecs(binaryCodec{connectproto.NewBinaryCodec()}, jsonCodec{strict})
}

// binaryCodec and jsonCodec read a message from where it is, when all of it is in memory: the codecs of the library
// make another copy, and a large message takes its size twice more.
type (
	binaryCodec struct{ *connectproto.BinaryCodec }
	jsonCodec   struct{ *connectproto.JSONCodec }
)

// UnmarshalRead reads a message.
func (c binaryCodec) UnmarshalRead(ctx context.Context, src io.Reader, msg any) error {
	if m, b, ok := there(src, msg); ok {
		return c.UnmarshalOptions.Unmarshal(b, m)
	}
	return c.BinaryCodec.UnmarshalRead(ctx, src, msg)
}

// UnmarshalRead reads a message.
func (c jsonCodec) UnmarshalRead(ctx context.Context, src io.Reader, msg any) error {
	if m, b, ok := there(src, msg); ok {
		return c.UnmarshalOptions.Unmarshal(b, m)
	}
	return c.JSONCodec.UnmarshalRead(ctx, src, msg)
}

// there is the text of a message that is in memory.
func there(src io.Reader, msg any) (proto.Message, []byte, bool) {
	m, isMessage := msg.(proto.Message)
	b, inMemory := src.(*bytes.Buffer)
	if !isMessage || !inMemory {
		return nil, nil, false
	}
	return m, b.Next(b.Len()), true
}

// versionRefusal is the body of an answer to a program of another version. Programs of version 2 and before, which do
// not use the contract, read kind and lines; clients of Connect read code and message; later commands see the version
// in the header.
type versionRefusal struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	*Error
}

// OtherVersion refuses a request that names another version of the protocol than this program's. format has verbs for
// the two versions.
func OtherVersion(w http.ResponseWriter, r *http.Request, format string) bool {
	got := r.Header.Get(versionHeader)
	if got == "" || got == strconv.Itoa(Version) {
		return false
	}
	e := NewError(Invalid, fmt.Sprintf(format, Version, got))
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusUnprocessableEntity)
	b, err := json.Marshal(versionRefusal{connect.CodeInvalidArgument.String(), e.Error(), e})
	if err == nil {
		_, _ = io.WriteString(w, string(b)+"\n") // a caller that has disconnected needs no answer
	}
	return true
}

// Detailed is an error of a controller with the contract's Error among its details, as an agent's has it. An error that
// has details already, such as one that a host gave, keeps them.
func Detailed(err error) error {
	if err == nil {
		return nil
	}
	code, text := connect.CodeOf(err), err.Error()
	var sent *connect.Error
	if errors.As(err, &sent) {
		if len(sent.Details()) > 0 {
			return err
		}
		text = sent.Message()
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	m := &agentv1.Error{}
	var c wire.Codec
	if c.Put(NewError(kindOf(code), strings.Split(text, "\n")...), m) != nil {
		return err
	}
	d, failed := connectproto.NewErrorDetail(m)
	if failed != nil {
		return err
	}
	if sent == nil {
		sent = connect.NewError(code, text)
	}
	return sent.WithDetail(d)
}

// kindOf says whose fault an error of that code is.
func kindOf(code connect.Code) ErrorKind {
	switch code {
	case connect.CodeNotFound:
		return NotFound
	case connect.CodeInvalidArgument, connect.CodeFailedPrecondition, connect.CodeAborted, connect.CodeAlreadyExists,
		connect.CodePermissionDenied, connect.CodeUnauthenticated, connect.CodeResourceExhausted,
		connect.CodeOutOfRange, connect.CodeUnimplemented:
		return Invalid
	}
	return Internal
}
