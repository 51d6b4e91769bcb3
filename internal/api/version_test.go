package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// A program of version 2 uses JSON over HTTP: it prints the lines of the answer.
func TestAProgramOfTheVersionBeforeIsRefusedWithASentence(t *testing.T) {
	_, socket := serve(t, &echo{})
	for _, version := range []string{fmt.Sprint(Version - 1), fmt.Sprint(Version + 1)} {
		req, err := http.NewRequest(http.MethodGet, "http://agent/state", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(versionHeader, version)
		resp, err := plain(socket).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		var e Error
		err = json.NewDecoder(resp.Body).Decode(&e)
		resp.Body.Close()
		want := fmt.Sprintf("this agent speaks version %d of the protocol, the command version %q: use the heddle "+
			"program the agent was started with", Version, version)
		if err != nil || resp.StatusCode != http.StatusUnprocessableEntity || e.Kind != Invalid || e.Error() != want ||
			resp.Header.Get(versionHeader) != fmt.Sprint(Version) {
			t.Errorf("%s, version %s, %+v %v", resp.Status, resp.Header.Get(versionHeader), e, err)
		}
	}
}

// An agent of version 2 answers as it answered its own programs.
func TestAnAgentOfTheVersionBeforeIsToldFromOneThatFails(t *testing.T) {
	c := answeredBy(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(versionHeader, fmt.Sprint(Version-1))
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = io.WriteString(w, `{"kind":"invalid","lines":["this agent speaks version 2 of the protocol"]}`)
	}))
	for name, err := range map[string]error{
		"a call":    second(c.State(t.Context())),
		"events":    c.Events(t.Context(), Follow{}, func(Events) error { return nil }),
		"a capture": c.Capture(t.Context(), Capture{}, func(CaptureEvent) error { return nil }),
	} {
		t.Run(name, func(t *testing.T) {
			if err == nil || !strings.Contains(err.Error(),
				fmt.Sprintf("speaks version \"%d\" of the protocol, this command version %d", Version-1, Version)) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// answeredBy returns a client of a simulated agent, which has this version of the protocol unless h says otherwise.
func answeredBy(t *testing.T, h http.Handler) *Client {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "a.sock")
	l, err := Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(versionHeader, fmt.Sprint(Version))
		h.ServeHTTP(w, r)
	})}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	t.Cleanup(func() {
		if srv.Close(); !errors.Is(<-done, http.ErrServerClosed) {
			t.Error("the server failed")
		}
	})
	return NewClient(socket)
}

func second[T any](_ T, err error) error { return err }
