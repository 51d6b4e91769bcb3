package cni

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strings"

	"heddle/internal/spec"
)

// identity is whose port it is, on whatever host it is asked: the UUID of the pod, or of the container, and the
// adapter. The runtime says the pod's (K8S_POD_UID in CNI_ARGS). A container's identifier is unique on its host alone,
// so that its UUID is made of both.
func (a *attachment) identity() (vm, adapter string) {
	adapter = a.conf.Name + "/" + a.ifname
	if id := uuid(a.pod); id != "" {
		return id, adapter
	}
	// Without a machine-id the container's identifier stands for itself.
	machine, _ := os.ReadFile("/etc/machine-id")
	h := sha256.Sum256([]byte("heddle container\x00" + string(machine) + "\x00" + a.container))
	h[6], h[8] = h[6]&0x0f|0x80, h[8]&0x3f|0x80 // version 8: made by rules of our own (RFC 9562 section 5.8)
	return uuid(hex.EncodeToString(h[:16])), adapter
}

// uuid is a UUID with its dashes, which those of pods that a node has from a file lack; "" for a text that is none.
func uuid(text string) string {
	if len(text) == 32 {
		text = strings.Join([]string{text[:8], text[8:12], text[12:16], text[16:20], text[20:]}, "-")
	}
	if !spec.ValidUUID(text) {
		return ""
	}
	return strings.ToLower(text)
}
