package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/api/heddle/controller/v1/controllerv1connect"
	"heddle/internal/host/keystore"
	"heddle/internal/host/ownfile"
	"heddle/internal/identity"
	"heddle/internal/platform/pki"
	"heddle/internal/platform/store"
)

// Directories of a join: what the cluster gave is staged whole before anything of this controller's own is replaced.
const (
	stagingDir = "joining.tmp"
	stagedDir  = "joining"
	keysDir    = "joining.key" // of the request: the same controller may ask again
)

// Join says which cluster a controller joins, and by what right.
type Join struct {
	// Controller is HOST:PORT of any of its controllers.
	Controller string
	Token      string
	// Name of this controller, for people.
	Name string
}

// Joined says what became of it.
type Joined struct {
	Cluster string `json:"cluster"`
	Name    string `json:"name"`
	// Started: the controller runs, and has joined. Otherwise it joins when it is started.
	Started bool `json:"started"`
	// Notes are about the cluster as a whole.
	Notes []string `json:"notes"`
}

// joinDoc is what a controller keeps until it is a member of etcd.
type joinDoc struct {
	// Controllers are their addresses, HOST:PORT.
	Controllers []string `json:"controllers"`
}

// JoinOffline makes a controller that does not run part of a cluster: it becomes a member when it is started.
func JoinOffline(ctx context.Context, o Options, j Join) (*Joined, error) {
	if err := ownfile.MakeDir(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("the controller's directory: %w", err)
	}
	if (&self{dir: o.Dir}).begun() {
		return nil, fmt.Errorf("%s has the data of a controller: start that controller and repeat this, if its "+
			"cluster is empty; or move the directory away, if nobody needs it", o.Dir)
	}
	var err error
	if j.Name == "" {
		if j.Name, err = o.nameIn(o.Dir); err != nil {
			return nil, err
		}
	}
	out, err := stage(ctx, o, j)
	if err != nil {
		return nil, err
	}
	return out, asOwner(o.Dir)
}

// stage asks the cluster to let this controller in, and keeps what it gives beside what the controller has. It counts
// from the next start.
func stage(ctx context.Context, o Options, j Join) (*Joined, error) {
	if _, _, err := net.SplitHostPort(j.Controller); err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Sprintf("%q is no address of a controller: give "+
			"HOST:PORT, such as controller1.example:7411", j.Controller))
	}
	token, err := identity.ParseControllerToken(j.Token)
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err.Error())
	}
	keys, err := keystore.Open(filepath.Join(o.Dir, keysDir))
	if err != nil {
		return nil, err
	}
	key, err := keys.NextKey()
	if err != nil {
		return nil, err
	}
	csr, err := key.Request()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, letInTime)
	defer cancel()
	got, err := callPinned(token, j.Controller).JoinController(ctx, &controllerv1.JoinControllerRequest{Token: j.Token,
		Name: j.Name, Csr: csr, Address: o.Advertise})
	if err != nil {
		return nil, refusal(ctx, j.Controller, err)
	}
	if got.GetEmbedded() != (len(o.Outside.Endpoints) == 0) {
		return nil, connect.NewError(connect.CodeFailedPrecondition, "the cluster keeps its state "+where(got)+
			": give this controller the same (--etcd-endpoints)")
	}
	doc, err := pki.Decode(got.GetAuthority())
	if err != nil {
		return nil, err
	}
	if err := writeStaged(o.Dir, j.Name, got); err != nil {
		return nil, err
	}
	return &Joined{Cluster: string(doc.Cluster), Name: j.Name}, keys.Forget()
}

func where(r *controllerv1.JoinControllerResponse) string {
	if r.GetEmbedded() {
		return "in the controllers themselves"
	}
	return "in an existing etcd cluster"
}

// callPinned is a client of a controller of which no more is known than the token says.
func callPinned(token identity.JoinToken, address string) controllerv1connect.ControllerServiceClient {
	return call(&http.Transport{TLSClientConfig: identity.JoinTLS(token, identity.NewClock(time.Now)),
		TLSHandshakeTimeout: callTime}, address)
}

// letInTime bounds how long a controller waits for the one that lets it in.
const letInTime = 25 * time.Second

// callTime bounds a handshake with another controller.
const callTime = 10 * time.Second

func call(t *http.Transport, address string) controllerv1connect.ControllerServiceClient {
	t.Protocols = &http.Protocols{}
	t.Protocols.SetHTTP2(true)
	t.IdleConnTimeout = time.Second
	return controllerv1connect.NewControllerServiceClient(connect.NewClient(connecthttp.NewTransport(
		&http.Client{Transport: t}, "https://"+address, connecthttp.WithCompressors())))
}

// refusal is why the cluster does not let this controller in, for people: what, where, and what to do.
func refusal(ctx context.Context, address string, err error) error {
	code, why := connect.CodeOf(err), err.Error()
	var said *connect.Error
	if errors.As(err, &said) {
		why = said.Message()
	}
	var token *identity.TokenError
	again := "nothing has changed here, and the same token may be used again: repeat the command"
	switch {
	case errors.As(err, &token):
		return connect.NewError(connect.CodeFailedPrecondition, fmt.Sprintf("the controller at %s: %s", address, token))
	case errors.Is(ctx.Err(), context.Canceled):
		return connect.NewError(connect.CodeCanceled, fmt.Sprintf("interrupted while the controller at %s was asked: "+
			"%s",
			address, again))
	case code == connect.CodeDeadlineExceeded || ctx.Err() != nil:
		return connect.NewError(connect.CodeUnavailable, fmt.Sprintf("no controller has answered at %s: "+
			"give an address at which a controller of the cluster takes hosts (its --listen, port 7411), and see that "+
			"it runs and that no firewall is in between; %s", address, again))
	case code == connect.CodeUnavailable:
		return connect.NewError(connect.CodeUnavailable, fmt.Sprintf("no controller answers at %s (%s): give an "+
			"address "+
			"at which a controller of the cluster takes hosts (its --listen, port 7411), and see that it runs and "+
			"that "+
			"no firewall is in between", address, why))
	case said == nil || code == connect.CodeUnimplemented || code == connect.CodeUnknown:
		return connect.NewError(connect.CodeFailedPrecondition, fmt.Sprintf("%s is not where controllers take "+
			"others (%s): give the address of --listen, port 7411", address, why))
	}
	return connect.NewError(connect.CodeFailedPrecondition, fmt.Sprintf("the controller at %s refuses: %s", address,
		why))
}

// writeStaged keeps what the cluster gave, whole or not at all.
func writeStaged(dir, name string, got *controllerv1.JoinControllerResponse) error {
	tmp := filepath.Join(dir, stagingDir)
	if err := os.RemoveAll(tmp); err != nil {
		return err
	}
	if err := ownfile.MakeDir(tmp, 0o700); err != nil {
		return err
	}
	list, err := json.Marshal(joinDoc{got.GetControllers()})
	if err != nil {
		return err
	}
	for file, content := range map[string][]byte{idFile: []byte(got.GetController()), nameFile: []byte(name),
		authorityFile: got.GetAuthority(), joinFile: list} {
		if err := ownfile.Replace(filepath.Join(tmp, file), content); err != nil {
			return err
		}
	}
	if err := keystore.WriteSecret(filepath.Join(tmp, secretFile), got.GetSecret()); err != nil {
		return err
	}
	staged := filepath.Join(dir, stagedDir)
	if err := os.RemoveAll(staged); err != nil {
		return err
	}
	if err := os.Rename(tmp, staged); err != nil {
		return err
	}
	return ownfile.SyncDir(dir)
}

// takeStaged makes what the cluster gave this controller's own. It may be repeated where it was broken off.
func takeStaged(dir string) error {
	staged := filepath.Join(dir, stagedDir)
	files, err := os.ReadDir(staged)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	// Of a cluster of its own, which was empty, or of one whose store is lost.
	for _, old := range []string{storeFile, foundingFile, restoringFile, etcdDir, peerDir} {
		if err := os.RemoveAll(filepath.Join(dir, old)); err != nil {
			return err
		}
	}
	for _, f := range files {
		if err := os.Rename(filepath.Join(staged, f.Name()), filepath.Join(dir, f.Name())); err != nil {
			return err
		}
	}
	if err := os.Remove(staged); err != nil {
		return err
	}
	return ownfile.SyncDir(dir)
}

// joinPause is between two attempts to become a member, joinTime how long one may take.
const (
	joinPause = time.Second
	joinTime  = 30 * time.Second
)

// joining makes a controller that has joined a member of etcd, by any of the others; nothing where it is the first of
// its cluster.
func (s *self) joining(ctx context.Context, o Options, peers *store.Peers) error {
	text, err := ownfile.Read(s.file(joinFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var doc joinDoc
	if err := json.Unmarshal(text, &doc); err != nil {
		return fmt.Errorf("%s is damaged: join again with an empty data directory: %w", s.file(joinFile), err)
	}
	for {
		if peers.Members, err = s.addMember(ctx, doc.Controllers, peers.Advertise, o.Log); err == nil {
			peers.Existing = true
			return nil
		}
		if connect.CodeOf(err) == connect.CodePermissionDenied {
			return err
		}
		o.Log.Warn("this controller cannot become a member yet", "err", err)
		select {
		case <-time.After(joinPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// addMember asks the controllers, one after the other.
func (s *self) addMember(ctx context.Context, controllers, urls []string, log *slog.Logger) (members []string,
	err error) {
	err = errors.New("no other controller is known")
	for _, address := range controllers {
		if address == s.Address {
			continue
		}
		one, cancel := context.WithTimeout(ctx, joinTime)
		conf := identity.Client{Own: s.credentials, Clock: identity.NewClock(time.Now)}.TLS()
		var got *controllerv1.AddMemberResponse
		got, err = call(&http.Transport{TLSClientConfig: conf, TLSHandshakeTimeout: callTime}, address).AddMember(one,
			&controllerv1.AddMemberRequest{Urls: urls})
		cancel()
		if err == nil {
			return got.GetMembers(), nil
		}
		log.Debug("a controller did not make this one a member", "controller", address, "err", err)
	}
	return nil, err
}

// asOwner gives everything in a directory to its owner: the service runs as a user of its own, commands as root.
func asOwner(dir string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	uid, gid, err := ownerOf(dir)
	if err != nil || uid == 0 {
		return err
	}
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, uid, gid)
	})
}

// ownerOf is who a file belongs to.
func ownerOf(path string) (uid, gid int, err error) {
	var st syscall.Stat_t
	err = syscall.Stat(path, &st)
	return int(st.Uid), int(st.Gid), err
}
