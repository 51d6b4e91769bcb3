package api_test

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// TestTheContractKnowsNothingOfTheKernel: neither the types nor the codec import the kernel's structs, nor package
// unsafe.
func TestTheContractKnowsNothingOfTheKernel(t *testing.T) {
	var files []string
	for _, pattern := range []string{"*.go", "wire/*.go", "../../api/*.go"} {
		more, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, more...)
	}
	forbidden := []string{"unsafe", "heddle/internal/abi", "heddle/internal/dataplane", "github.com/cilium/ebpf"}
	checked := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		checked++
		for _, i := range f.Imports {
			path, err := strconv.Unquote(i.Path.Value)
			if err != nil || slices.ContainsFunc(forbidden, func(p string) bool {
				return path == p || strings.HasPrefix(path, p+"/")
			}) {
				t.Errorf("%s imports %s %v", name, path, err)
			}
		}
	}
	if checked < 20 {
		t.Errorf("%d files were checked", checked)
	}
}

// TestBytesOfTheContractAreAddressesAndFrames: or hashes; other structured values are messages, never structs in bytes.
func TestBytesOfTheContractAreAddressesAndFrames(t *testing.T) {
	frames := []string{"TraceRequest.frames", "CapturedFrame.data"}
	hashes := []string{"ForeseeRequest.base", "ForeseeRequest.next"}
	addresses := []string{"mac", "seen_mac", "source_mac", "destination_mac", "src_mac", "dst_mac", "rival_mac",
		"source", "destination", "src", "dst", "address", "endpoint_address", "gateways", "missing", "system",
		"local", "remote"}
	seen := 0
	protoregistry.GlobalFiles.RangeFilesByPackage("heddle.agent.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Messages().Len() {
			m := file.Messages().Get(i)
			for n := range m.Fields().Len() {
				fd := m.Fields().Get(n)
				if fd.Kind() != protoreflect.BytesKind {
					continue
				}
				seen++
				if name := string(m.Name()) + "." + string(fd.Name()); !slices.Contains(frames, name) &&
					!slices.Contains(hashes, name) && !slices.Contains(addresses, string(fd.Name())) {
					t.Errorf("%s is bytes: say what is in them, or make it a message", name)
				}
			}
		}
		return true
	})
	if seen < 10 {
		t.Errorf("%d fields of bytes", seen)
	}
}
