package contexts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
	"golang.org/x/sys/unix"

	"heddle/internal/host/ownfile"
	"heddle/internal/identity"
)

// FileVar names the file where somebody wants another one.
const FileVar = "HEDDLE_CONTEXTS"

// Context is a cluster of controllers as a user knows it.
type Context struct {
	Name string `yaml:"name"`
	// Controller is where one answers: https://HOST:PORT.
	Controller string `yaml:"controller"`
	// Roots are by what its certificate is known, in PEM form; Cluster is the cluster's id.
	Cluster string `yaml:"cluster"`
	Roots   string `yaml:"roots"`
	// Token is the user's; TokenFile is where it is instead.
	Token     string `yaml:"token,omitempty"`
	TokenFile string `yaml:"tokenFile,omitempty"`
	// SignIn is how the token is renewed; nil for one that an admin made.
	SignIn *SignIn `yaml:"signIn,omitempty"`
}

// SignIn is what is kept of somebody's signing in by an identity provider.
type SignIn struct {
	// Expires is when the token ends.
	Expires time.Time `yaml:"expires"`
	// Refresh gets another one from the provider; "" where it gave none. Nonce is that of the sign-in.
	Refresh string `yaml:"refresh,omitempty"`
	Nonce   string `yaml:"nonce,omitempty"`
}

// File is all contexts of a user.
type File struct {
	// Current is the name of the one that commands use.
	Current  string    `yaml:"current"`
	Contexts []Context `yaml:"contexts"`

	path string
}

// lockEvery is how often somebody tries to get the file for themselves.
const lockEvery = 50 * time.Millisecond

// Lock keeps other programs of the user that change the file away until unlock is called, and reads the file anew.
func Lock(ctx context.Context, path string) (f *File, unlock func(), err error) {
	if err := ownfile.MakeDir(filepath.Dir(path), 0o700); err != nil {
		return nil, nil, fmt.Errorf("the contexts: %w", err)
	}
	l, err := ownfile.Open(path+".lock", os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, nil, fmt.Errorf("the contexts: %w", err)
	}
	unlock = func() { _ = l.Close() } // which gives the lock back
	for {
		err := unix.Flock(int(l.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			unlock()
			return nil, nil, fmt.Errorf("the contexts: %w", err)
		}
		select {
		case <-time.After(lockEvery):
		case <-ctx.Done():
			unlock()
			return nil, nil, fmt.Errorf("another program changes %s: %w", path, ctx.Err())
		}
	}
	if f, err = Load(path); err != nil {
		unlock()
		return nil, nil, err
	}
	return f, unlock, nil
}

// Where is the file's path.
func (f *File) Where() string { return f.path }

// Path is where a user's file is.
func Path(getenv func(string) string) (string, error) {
	if p := getenv(FileVar); p != "" {
		return p, nil
	}
	dir := getenv("XDG_CONFIG_HOME")
	if dir == "" {
		home := getenv("HOME")
		if home == "" {
			return "", fmt.Errorf("there is no home directory for the contexts: set HOME, or %s to a file", FileVar)
		}
		dir = filepath.Join(home, ".config")
	}
	return filepath.Join(dir, "heddle", "contexts.yaml"), nil
}

// Load reads the file; one that is not there has no contexts.
func Load(path string) (*File, error) {
	f := &File{path: path}
	text, err := ReadPrivate(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the contexts: %w", err)
	}
	if yaml.Unmarshal(text, f) != nil { // whose error quotes the file, where there may be a token
		return nil, fmt.Errorf("the contexts in %s are no YAML as \"heddle context add\" writes it: correct it, or "+
			"move "+
			"it away and add them again", path)
	}
	f.path = path
	return f, nil
}

// ReadPrivate reads a file that nobody but its owner may read.
func ReadPrivate(path string) ([]byte, error) {
	perm, err := ownfile.Perm(path)
	if err != nil {
		return nil, err
	}
	if perm&0o077 != 0 {
		return nil, fmt.Errorf("others than its owner may read %s (its mode is %04o): chmod 600 %s, and have its "+
			"token revoked if somebody may have read it", path, perm, path)
	}
	return ownfile.Read(path)
}

// Save writes the file.
func (f *File) Save() error {
	text, err := yaml.Dump(f)
	if err != nil {
		return err
	}
	if err := ownfile.MakeDir(filepath.Dir(f.path), 0o700); err != nil {
		return fmt.Errorf("the contexts: %w", err)
	}
	return ownfile.Replace(f.path, text)
}

// Get finds a context.
func (f *File) Get(name string) (*Context, bool) {
	i := slices.IndexFunc(f.Contexts, func(c Context) bool { return c.Name == name })
	if i < 0 {
		return nil, false
	}
	return &f.Contexts[i], true
}

// At finds a context by the controller's URL; the current one first.
func (f *File) At(address string) (*Context, bool) {
	if c, ok := f.Get(f.Current); ok && c.Controller == address {
		return c, true
	}
	i := slices.IndexFunc(f.Contexts, func(c Context) bool { return c.Controller == address })
	if i < 0 {
		return nil, false
	}
	return &f.Contexts[i], true
}

// Put adds a context, or takes the place of the one with its name. It becomes the current one where there is none.
func (f *File) Put(c Context) {
	if had, ok := f.Get(c.Name); ok {
		*had = c
	} else {
		f.Contexts = append(f.Contexts, c)
	}
	if _, ok := f.Get(f.Current); !ok {
		f.Current = c.Name
	}
}

// Remove takes a context out.
func (f *File) Remove(name string) bool {
	n := len(f.Contexts)
	f.Contexts = slices.DeleteFunc(f.Contexts, func(c Context) bool { return c.Name == name })
	if f.Current == name {
		f.Current = ""
	}
	return len(f.Contexts) < n
}

// Trust is by what the context knows its controllers.
func (c *Context) Trust() (identity.Trust, error) {
	roots, err := identity.ParseCerts([]byte(c.Roots))
	if err == nil && len(roots) == 0 {
		err = errors.New("it has no root")
	}
	if err != nil {
		return identity.Trust{}, fmt.Errorf("context %s: %w: add it again (heddle context add)", c.Name, err)
	}
	return identity.Trust{Cluster: identity.ClusterID(c.Cluster), Roots: roots}, nil
}

// Secret is the user's token.
func (c *Context) Secret() (string, error) {
	if c.TokenFile == "" {
		return c.Token, nil
	}
	text, err := ReadPrivate(c.TokenFile)
	if err != nil {
		return "", fmt.Errorf("the token of context %s: %w", c.Name, err)
	}
	return string(bytes.TrimSpace(text)), nil
}

// URL is a controller's address as users write it: https://HOST:PORT, with what may be left out.
func URL(text string) (string, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "":
		return "", fmt.Errorf("%q is no address of a controller: give https://HOST:PORT", text)
	case u.Scheme != "https":
		return "", fmt.Errorf("%s: a token is never sent without TLS: give https://%s", text, u.Host)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "":
		return "", fmt.Errorf("%s: give https://HOST:PORT and nothing more", u.Redacted())
	}
	if u.Port() == "" {
		u.Host += ":7443"
	}
	return "https://" + u.Host, nil
}
