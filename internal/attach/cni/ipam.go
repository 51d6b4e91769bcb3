package cni

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/types/create"
)

// ipam runs the IPAM plugin with the command, this plugin's arguments and the network's configuration, as in section 4
// of the specification. The library's own function is not used because it needs a tracing framework.
func (a *attachment) ipam(ctx context.Context, command string) ([]byte, error) {
	plugin, err := findPlugin(os.Getenv("CNI_PATH"), a.conf.IPAM.Type)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, ipamTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, plugin)
	cmd.Env = append(os.Environ(), "CNI_COMMAND="+command)
	cmd.Stdin = bytes.NewReader(a.raw)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	if err == nil {
		return out.Bytes(), nil
	}
	answer := &types.Error{}
	if json.Unmarshal(out.Bytes(), answer) == nil && answer.Msg != "" {
		return nil, answer
	}
	what := err.Error()
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		what = fmt.Sprintf("no answer to %s within %s", command, ipamTime)
	}
	return nil, types.NewError(types.ErrInternal, fmt.Sprintf("IPAM plugin %s: %s", a.conf.IPAM.Type, what),
		strings.TrimSpace(errs.String()))
}

// findPlugin looks for an executable of that name in the directories of CNI_PATH.
func findPlugin(path, name string) (string, error) {
	if name != filepath.Base(name) || name == "." || name == ".." {
		return "", types.NewError(types.ErrInvalidNetworkConfig, fmt.Sprintf("ipam.type %q is not the name of a plugin",
			name), "")
	}
	for _, dir := range filepath.SplitList(path) {
		file := filepath.Join(dir, name)
		if fi, err := os.Stat(file); err == nil && fi.Mode().IsRegular() && fi.Mode()&0o111 != 0 {
			return file, nil
		}
	}
	return "", types.NewError(types.ErrInvalidNetworkConfig, fmt.Sprintf("there is no IPAM plugin %s in %s", name,
		path), "install it (Debian: containernetworking-plugins), or set CNI_PATH")
}

// assign asks the IPAM plugin for addresses; without a plugin the container gets none, and may ask by DHCP itself.
func (a *attachment) assign(ctx context.Context) (*current.Result, error) {
	result := &current.Result{CNIVersion: current.ImplementedSpecVersion}
	if !a.conf.IPAM.IsEmpty() {
		b, err := a.ipam(ctx, "ADD")
		if err != nil {
			return nil, err
		}
		if result, err = parseResult(a.conf.CNIVersion, b); err != nil {
			return nil, types.NewError(types.ErrDecodingFailure, "the IPAM plugin's answer is not understood",
				err.Error())
		}
		if len(result.IPs) == 0 {
			return nil, types.NewError(types.ErrInternal, fmt.Sprintf("IPAM plugin %s assigned no address",
				a.conf.IPAM.Type), "")
		}
	}
	if result.DNS.IsEmpty() {
		result.DNS = a.conf.DNS
	}
	return result, nil
}

func parseResult(version string, b []byte) (*current.Result, error) {
	r, err := create.Create(version, b)
	if err != nil {
		return nil, err
	}
	result, err := current.NewResultFromResult(r)
	if result == nil && err == nil {
		err = errors.New("it is empty")
	}
	return result, err
}

// callIPAM passes on a command whose answer does not matter.
func (a *attachment) callIPAM(ctx context.Context, command string) error {
	if a.conf.IPAM.IsEmpty() {
		return nil
	}
	_, err := a.ipam(ctx, command)
	return err
}
