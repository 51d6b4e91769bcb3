package guestlinks

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// settled is how long changes are gathered before their files are read: libvirt writes a status several times while
	// a domain starts.
	settled = 50 * time.Millisecond
	// retry is the time until the next attempt where there is no directory yet.
	retry = time.Second
	// maxFiles limits the files that are read when all are, and maxFirst their bytes when somebody waits for that.
	maxFiles = 10_000
	maxFirst = 32 << 20
)

// Watcher follows the statuses in a directory, in goroutines of its own, while somebody wants it.
type Watcher struct {
	dir    string
	tell   func(context.Context, map[string]Domain)
	warn   func(error)
	listen func(dir string) (notices, error)
	ctx    context.Context
	cancel context.CancelFunc
	all    sync.WaitGroup
	turned chan struct{}

	mu            sync.Mutex
	wanted, begun bool

	// until it has begun whoever asks for the first reading has these, then follow has
	known  map[string]Domain // by file: those with an adapter whose link is down
	told   map[string]Domain // by UUID
	warned map[string]bool   // files that could not be read
}

// Watch starts a watcher of the directory in which libvirt's QEMU driver keeps the statuses, and does nothing until it
// is wanted. tell is called from one goroutine with the domains that have an adapter whose link is down, by their
// UUIDs, whenever these are others than before; it may block until its context ends, and does not change what it gets.
// warn is called with what keeps a file from being read, once for each file until it can be read again.
func Watch(dir string, tell func(context.Context, map[string]Domain), warn func(error)) *Watcher {
	w := &Watcher{dir: dir, tell: tell, warn: warn, listen: noticesOf, turned: make(chan struct{}, 1),
		known: map[string]Domain{}, told: map[string]Domain{}, warned: map[string]bool{}}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

// First reads the directory once, before anybody has wanted it, and returns what tell would be called with: whoever
// follows it from then on is told what changes. It reads so much only as somebody can wait for; the rest is read when
// the directory is followed.
func (w *Watcher) First() map[string]Domain {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.begun {
		return nil
	}
	names, err := w.names()
	if err != nil {
		w.warnOf("", err)
		return nil
	}
	left := int64(maxFirst)
	for _, name := range names {
		if info, err := os.Lstat(filepath.Join(w.dir, name)); err == nil {
			left -= info.Size()
		}
		if left < 0 {
			break
		}
		w.read(name)
	}
	w.told = byUUID(w.known)
	return w.told
}

// Want sets whether the directory is followed.
func (w *Watcher) Want(wanted bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.wanted == wanted {
		return
	}
	w.wanted = wanted
	if !w.begun {
		w.begun = true
		w.all.Go(w.follow)
		return
	}
	select {
	case w.turned <- struct{}{}:
	default:
	}
}

// Close ends following and waits for the goroutines.
func (w *Watcher) Close() error {
	w.cancel()
	w.all.Wait()
	return nil
}

func (w *Watcher) isWanted() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.wanted
}

// follow keeps a session while somebody wants one. What is known stays when a session ends: the next one reads all.
func (w *Watcher) follow() {
	for w.ctx.Err() == nil {
		var again <-chan time.Time
		if w.isWanted() {
			w.session()
			again = time.After(retry)
		}
		if w.ctx.Err() != nil {
			return
		}
		if !w.isWanted() {
			w.known = map[string]Domain{}
			w.tellAll()
		}
		select {
		case <-w.ctx.Done():
		case <-w.turned:
		case <-again:
		}
	}
}

// session follows the directory until it is gone, or nobody wants that any more. One that cannot be followed is read:
// the next session comes soon.
func (w *Watcher) session() {
	n, err := w.listen(w.dir)
	if err != nil {
		w.warnOf("", err)
		w.readAll()
		w.tellAll()
		return
	}
	delete(w.warned, "")
	said := make(chan notice)
	ctx, end := context.WithCancel(w.ctx)
	var reading sync.WaitGroup
	reading.Go(func() { listen(ctx, n, said) })
	defer reading.Wait()
	defer n.Close()
	defer end()
	w.readAll()
	w.tellAll()
	changed, due := notice{}, (<-chan time.Time)(nil)
	for w.isWanted() {
		select {
		case <-w.ctx.Done():
			return
		case <-w.turned:
		case more, ok := <-said:
			if !ok || more.over {
				return
			}
			changed.all = changed.all || more.all || len(changed.files) > maxFiles
			if !changed.all {
				changed.files = append(changed.files, more.files...)
			}
			if due == nil && (changed.all || len(changed.files) > 0) {
				due = time.After(settled)
			}
		case <-due:
			w.readChanged(changed)
			w.tellAll()
			changed, due = notice{}, nil
		}
	}
}

// listen passes notices on until the context ends or the kernel says no more.
func listen(ctx context.Context, n notices, said chan<- notice) {
	defer close(said)
	for buffer := make([]byte, 16<<10); ; {
		next, err := n.next(buffer)
		if err != nil {
			return
		}
		select {
		case said <- next:
		case <-ctx.Done():
			return
		}
	}
}

func (w *Watcher) readChanged(n notice) {
	if n.all {
		w.readAll()
		return
	}
	done := map[string]bool{}
	for _, name := range n.files {
		if !done[name] {
			w.read(name)
		}
		done[name] = true
	}
}

// names returns the files that may be statuses.
func (w *Watcher) names() (names []string, err error) {
	dir, err := os.OpenFile(w.dir, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	all, err := dir.Readdirnames(maxFiles)
	if err != nil && !errors.Is(err, io.EOF) { // an empty directory is the end of its names
		return nil, err
	}
	return slices.DeleteFunc(all, func(name string) bool { return !isStatus(name) }), nil
}

// readAll reads all statuses, and forgets those that are gone. What is known stays where that is not known.
func (w *Watcher) readAll() {
	names, err := w.names()
	if err != nil {
		w.warnOf("", err)
		if isNoDir(err) {
			w.known = map[string]Domain{}
		}
		return
	}
	there := map[string]bool{}
	for _, name := range names {
		there[name] = true
		w.read(name)
	}
	maps.DeleteFunc(w.known, func(name string, _ Domain) bool { return !there[name] })
}

// read reads one status. What is known of one that cannot be read stays.
func (w *Watcher) read(name string) {
	d, err := read(w.dir, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		delete(w.known, name)
	case err != nil:
		w.warnOf(name, err)
		return
	case len(d.Down) > 0:
		w.known[name] = d
	default:
		delete(w.known, name)
	}
	delete(w.warned, name)
}

// warnOf warns once, and never that there is no directory: libvirt may be installed later.
func (w *Watcher) warnOf(name string, err error) {
	if w.warned[name] || name == "" && isNoDir(err) {
		return
	}
	if len(w.warned) < maxFiles {
		w.warned[name] = true
	}
	w.warn(err)
}

// tellAll tells which domains have an adapter whose link is down, if these are others than before.
func (w *Watcher) tellAll() {
	now := byUUID(w.known)
	if reflect.DeepEqual(now, w.told) {
		return
	}
	w.told = now
	w.tell(w.ctx, now)
}

// isNoDir reports whether an error says that there is no directory.
func isNoDir(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) }

func byUUID(known map[string]Domain) map[string]Domain {
	by := make(map[string]Domain, len(known))
	for _, d := range known {
		by[d.UUID] = d
	}
	return by
}
