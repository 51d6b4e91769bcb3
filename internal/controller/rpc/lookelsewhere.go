package rpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"connectrpc.com/connect/v2"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/api"
	"heddle/internal/platform/peers"
)

// elsewhere passes a call on to the controller that the host is connected to. away is the error where there is none.
func (l *looks) elsewhere(ctx context.Context, w http.ResponseWriter, host string, q *controllerv1.HostCallBegin,
	away error) (began bool, err error) {
	k, name := l.linkOf(ctx, host)
	if k == nil {
		return false, away
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+k.Address+"/hosts/"+url.PathEscape(host)+
		q.GetProcedure(), bytes.NewReader(q.GetBody()))
	if err != nil {
		return false, err
	}
	for name, value := range q.GetHeaders() {
		r.Header.Set(name, value)
	}
	resp, err := (&http.Client{Transport: k.Transport}).Do(r)
	if err != nil {
		return false, connect.NewError(connect.CodeUnavailable, fmt.Sprintf("controller %s, to which it is connected, "+
			"does not answer: %v", name, err))
	}
	defer resp.Body.Close()
	for _, name := range api.AnswerHeaders() {
		if v := resp.Header.Get(name); v != "" {
			w.Header().Set(name, v)
		}
	}
	w.WriteHeader(resp.StatusCode)
	return true, copyAnswer(w, resp.Body)
}

// linkOf is the connection to the controller that a host is connected to, and that one's name; nil where there is none.
func (l *looks) linkOf(ctx context.Context, host string) (*peers.Link, string) {
	there := l.askHosts(ctx, &controllerv1.GetHostsHereRequest{Names: []string{host}})
	for _, h := range there.Hosts {
		if !h.GetConnected() || h.GetHost().GetStale() || h.GetHost().GetName() != host {
			continue
		}
		for _, c := range l.Roster.Others() {
			if peers.NameOf(c) != h.GetHost().GetController() {
				continue
			}
			if k, err := l.LinkTo(c); err == nil {
				return k, peers.NameOf(c)
			}
		}
	}
	return nil, ""
}

// copyAnswer copies what comes, as it comes.
func copyAnswer(w http.ResponseWriter, from io.Reader) error {
	times := http.NewResponseController(w)
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		if n > 0 {
			if _, err := w.Write(b[:n]); err != nil {
				return fmt.Errorf("it was read too slowly: %w", err)
			}
			if err := times.Flush(); err != nil {
				return fmt.Errorf("it was read too slowly: %w", err)
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}
