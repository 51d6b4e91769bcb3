package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"
)

// follow answers with one JSON document a time, as they come, until the follower or the server ends. An error before the first
// document is the answer.
func follow[Q, T any](server context.Context, mux *http.ServeMux, path string, f func(context.Context, Q, func(T) error) error) {
	mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
		q, err := request[Q](w, r)
		if err != nil {
			answer(w, nil, err)
			return
		}
		flush := http.NewResponseController(w)
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(server, cancel)()
		out, begun := json.NewEncoder(w), false
		err = f(ctx, q, func(v T) error {
			if !begun {
				w.Header().Set("Content-Type", "application/json")
				begun = true
			}
			return errors.Join(flush.SetWriteDeadline(time.Now().Add(patience)), out.Encode(v), flush.Flush())
		})
		if err != nil && !begun {
			answer(w, nil, err)
		}
	})
}

// followed asks for what follow answers. It ends without an error when ctx ends, or when the agent does.
func followed[Q, T any](ctx context.Context, c *Client, path string, q Q, emit func(T) error) error {
	resp, err := c.send(ctx, http.MethodPost, path, q)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	defer resp.Body.Close()
	d := json.NewDecoder(resp.Body)
	if resp.StatusCode != http.StatusOK {
		return refusal(resp, d, path)
	}
	for {
		var v T
		if err := d.Decode(&v); err != nil {
			if ctx.Err() != nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return nil
			}
			return c.explain(err)
		}
		if err := emit(v); err != nil {
			return err
		}
	}
}
