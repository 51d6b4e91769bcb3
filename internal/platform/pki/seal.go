package pki

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
)

// SecretSize is how long the content of a cluster's secret file is.
const SecretSize = 32

// Secret opens what is sealed in the store. It is in a file of each controller's data directory and nowhere else. It is
// behind a function, so that fmt does not show it where it is in a field that is not exported.
type Secret struct{ content func() [SecretSize]byte }

// NewSecret draws one.
func NewSecret() Secret {
	var b [SecretSize]byte
	_, _ = rand.Read(b[:])
	return Secret{func() [SecretSize]byte { return b }}
}

// SecretOf is the secret with that content.
func SecretOf(content []byte) (Secret, error) {
	if len(content) != SecretSize {
		return Secret{}, fmt.Errorf("a cluster's secret has %d bytes, and this has %d", SecretSize, len(content))
	}
	b := [SecretSize]byte(content)
	return Secret{func() [SecretSize]byte { return b }}, nil
}

// Content is what is kept in the secret file, and given to a controller that joins.
func (s Secret) Content() []byte {
	if s.content == nil {
		return nil
	}
	b := s.content()
	return b[:]
}

// Format keeps the secret out of messages and logs.
func (Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("secret")) }

// Sealed is encrypted with a cluster's secret, by AES-256-GCM.
type Sealed struct {
	// By tells secrets apart, so that the wrong file is named as such.
	By    []byte `json:"by"`
	Nonce []byte `json:"nonce"`
	Text  []byte `json:"text"`
}

// ErrSecret says that something was sealed with another secret.
var ErrSecret = errors.New("this was sealed with another secret than the one in this controller's secret file: bring " +
	"back the file, or copy it from another controller of the cluster")

func (s Secret) derive(use string, n int) ([]byte, error) {
	if s.content == nil {
		return nil, errors.New("there is no secret")
	}
	return hkdf.Key(sha256.New, s.Content(), nil, "heddle "+use, n)
}

// cipher is what seals, and how the secret is known.
func (s Secret) cipher() (c cipher.AEAD, by []byte, err error) {
	key, err := s.derive("seal 1", 32)
	if err != nil {
		return nil, nil, err
	}
	if by, err = s.derive("name of the secret", 8); err != nil {
		return nil, nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, nil, err
	}
	c, err = cipher.NewGCM(block)
	return c, by, err
}

// Seal encrypts a text. It opens again only with the same purpose, so that what was sealed for one can't be put in the
// place of another.
func (s Secret) Seal(purpose string, text []byte) (*Sealed, error) {
	c, by, err := s.cipher()
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, c.NonceSize())
	_, _ = rand.Read(nonce)
	return &Sealed{by, nonce, c.Seal(nil, nonce, text, []byte(purpose))}, nil
}

// Open decrypts what Seal made.
func (s Secret) Open(purpose string, sealed *Sealed) ([]byte, error) {
	c, by, err := s.cipher()
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(by, sealed.By) {
		return nil, ErrSecret
	}
	if len(sealed.Nonce) != c.NonceSize() {
		return nil, errors.New("what was sealed is damaged")
	}
	text, err := c.Open(nil, sealed.Nonce, sealed.Text, []byte(purpose))
	if err != nil {
		return nil, errors.New("what was sealed is damaged, or was sealed for another purpose")
	}
	return text, nil
}
