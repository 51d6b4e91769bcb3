package keystore

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"

	"heddle/internal/host/ownfile"
)

// WriteSecret stores a secret in a file that only its owner can read, as a line of hexadecimal digits. It never
// replaces another secret: what was sealed with that one could not be opened any more.
func WriteSecret(path string, content []byte) error {
	old, err := ReadSecret(path)
	switch {
	case err == nil && bytes.Equal(old, content):
		return nil
	case err == nil:
		return fmt.Errorf("%s holds another secret: keep it, and remove it only if nothing needs it any more", path)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return ownfile.Replace(path, append(hex.AppendEncode(nil, content), '\n'))
}

// ReadSecret reads what WriteSecret wrote. It refuses a file that others may read.
func ReadSecret(path string) ([]byte, error) {
	perm, err := ownfile.Perm(path)
	if err != nil {
		return nil, err
	}
	if perm&0o077 != 0 {
		return nil, fmt.Errorf("others than its owner may read the secret in %s (its mode is %04o): take that from "+
			"them (chmod 600 %s), and seal anew what it protects if somebody may have read it", path,
			perm, path)
	}
	text, err := ownfile.Read(path)
	if err != nil {
		return nil, err
	}
	content, err := hex.DecodeString(string(bytes.TrimSpace(text)))
	if err != nil || len(content) == 0 {
		return nil, fmt.Errorf("%s is no secret: bring back the file, or copy it from another controller", path)
	}
	return content, nil
}
