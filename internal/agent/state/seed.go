package state

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"heddle/internal/host/ownfile"
)

// seed is the content of a file of its own: an earlier program writes the state anew without what it does not know.
type seed struct {
	Seed string `json:"seed"`
}

func (s *Store) seedPath() string { return filepath.Join(s.dir, "seed.json") }

// Seed returns what was drawn when the state began. MACs are derived from it too: machines that were cloned have one
// machine-id. It is "" for a state that an earlier version began, whose host ports keep the MACs that they have. It is
// called before the state is saved for the first time, and what it returns is on the disk.
func (s *Store) Seed() (string, error) {
	b, err := ownfile.Read(s.seedPath())
	switch {
	case errors.Is(err, os.ErrNotExist):
		return s.draw()
	case err != nil:
		return "", fmt.Errorf("read the agent's seed: %w", err)
	}
	var have seed
	if err = ownfile.CheckSeal(b); err == nil {
		err = json.Unmarshal(b, &have)
	}
	if err == nil && have.Seed == "" {
		err = errors.New("it has no seed")
	}
	if err != nil {
		return "", fmt.Errorf("the agent's seed in %s is damaged (%w): restore the file, or remove it: host ports "+
			"without a configured mac get other MACs then", s.seedPath(), err)
	}
	return have.Seed, nil
}

// draw makes the seed of a state that begins.
func (s *Store) draw() (string, error) {
	if _, err := os.Lstat(s.path()); !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	drawn := seed{rand.Text()}
	text, err := json.Marshal(drawn)
	if err == nil {
		err = ownfile.Replace(s.seedPath(), ownfile.Seal(bytes.TrimSuffix(text, []byte("}"))))
	}
	if err != nil {
		return "", fmt.Errorf("write the agent's seed: %w", err)
	}
	return drawn.Seed, nil
}
