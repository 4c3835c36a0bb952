package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/karpenter-go/karpenter/internal/testing/sandbox/download"
)

// remainder is what is built where the components of a release of Kubernetes are downloaded. The flags are those by which the
// programs of the product are built, so that the two builds share the packages that both have.
var remainder = recipe{
	file: "etcd-and-kwok", links: []string{etcd, kwok}, flags: []string{"-tags", "nokubernetes", "-trimpath"}, env: []string{"CGO_ENABLED=0"},
	start: "building etcd and kwok from source; the first time takes 1 to 3 minutes on 2 cores", of: 1100,
}

// fetchError is one of a download. What cannot be downloaded can be built.
type fetchError struct{ error }

// Unwrap returns the problem.
func (e fetchError) Unwrap() error { return e.error }

// isUnavailable reports whether an error says that a release cannot be downloaded. Others, such as of the compiler,
// would end a build too.
func isUnavailable(err error) bool {
	_, failed := errors.AsType[fetchError](err)
	_, unknown := errors.AsType[*download.NoSumError](err)
	return failed || unknown
}

// released returns a folder for Auto: one that was built already, else one with what could be downloaded, else one that it
// builds. It says which it does, and why.
func released(ctx context.Context, from source, options AssetsOptions) (string, error) {
	key, err := buildKey(ctx, from)
	if err != nil {
		return "", fmt.Errorf("preparing the sandbox of %s: %w", from.modfile, err)
	}
	if cache, err := cacheFolder(); err == nil && isComplete(cache+string(os.PathSeparator)+key) {
		return cache + string(os.PathSeparator) + key, nil
	}
	archives, err := from.archives()
	if err == nil {
		var folder string
		if folder, err = downloaded(ctx, from, key, archives, options); err == nil {
			return folder, nil
		}
	}
	if ctx.Err() != nil || !isUnavailable(err) {
		return "", fmt.Errorf("preparing the sandbox of %s: %w", from.modfile, err)
	}
	options.Progress(fmt.Sprintf("the control plane is built from source, which takes %s the first time, because it cannot be downloaded: %v",
		buildTakes, err))
	return build(ctx, from, options.Progress)
}

// archives returns those of the release that the source is for.
func (s source) archives() ([]download.Archive, error) {
	gomod, err := os.ReadFile(s.modfile)
	if err != nil {
		return nil, err
	}
	kubernetes, store := requirement(string(gomod), "k8s.io/kubernetes"), requirement(string(gomod), "go.etcd.io/etcd/server/v3")
	return download.Find(kubernetes, store, download.Platform)
}

// downloaded returns a folder with the executables of the archives, and the others as links to one that is built meanwhile.
func downloaded(ctx context.Context, from source, key string, archives []download.Archive, options AssetsOptions) (string, error) {
	hash := sha256.New()
	fmt.Fprintln(hash, key, remainder.file, remainder.flags)
	names := make([]string, len(archives))
	for i, a := range archives {
		fmt.Fprintln(hash, a.Sum)
		names[i] = a.Name
	}
	return cached(ctx, hex.EncodeToString(hash.Sum(nil))[:16], options.Progress, func(unfinished string) error {
		client := download.NewClient(options.Mirror, options.Progress)
		options.Progress(fmt.Sprintf("downloading %s from %s", strings.Join(names, " and "), client.Location(archives[0])))
		group, ctx := errgroup.WithContext(ctx)
		for _, a := range archives {
			group.Go(func() error {
				if err := client.Fetch(ctx, a, unfinished); err != nil {
					return fetchError{err}
				}
				return nil
			})
		}
		group.Go(func() error { return compile(ctx, from, remainder.without(archives), unfinished, options.Progress) })
		return group.Wait()
	})
}

// without returns a recipe without the links of what the archives have.
func (r recipe) without(archives []download.Archive) recipe {
	links := r.links
	r.links = nil
	for _, name := range links {
		if !hasMember(archives, name) {
			r.links = append(r.links, name)
		}
	}
	return r
}

func hasMember(archives []download.Archive, name string) bool {
	for _, a := range archives {
		for _, member := range a.Members {
			if member == name {
				return true
			}
		}
	}
	return false
}

// Pin returns the file of checksums of package download (its path, and its text) with those of the release of a minor
// version of Kubernetes such as 1.36, and of the etcd that belongs to it, as they are published.
func Pin(ctx context.Context, options AssetsOptions) (path, text string, err error) {
	module, found := sources()
	if !found {
		return "", "", fmt.Errorf("no source tree of %s in the current directory or above it", modulePath)
	}
	from, err := sourceOf(module, options.KubernetesVersion)
	if err != nil {
		return "", "", err
	}
	gomod, err := os.ReadFile(from.modfile)
	if err != nil {
		return "", "", err
	}
	text, err = download.NewClient(options.Mirror, options.Progress).Pin(ctx,
		requirement(string(gomod), "k8s.io/kubernetes"), requirement(string(gomod), "go.etcd.io/etcd/server/v3"))
	return strings.TrimSuffix(module, "sandbox/kubernetes") + "internal/testing/sandbox/download/sums.txt", text, err
}

var versionOf = regexp.MustCompile(`v(\d+\.\d+)\.\d+`)

// checkVersions runs each executable of a folder for a moment. All of Kubernetes have to be of one minor version, and of the
// wanted one, unless that is empty.
func checkVersions(ctx context.Context, folder, wanted string) error {
	const longest = 20 * time.Second
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	of := ""
	for _, c := range catalog {
		ask := "--version"
		if c.name == kwok {
			ask = "--help"
		}
		command := executable(folder, c.name)
		output, err := exec.CommandContext(ctx, command[0], append(command[1:], ask)...).CombinedOutput()
		if err != nil {
			first, _, _ := strings.Cut(strings.TrimSpace(string(output)), "\n")
			return fmt.Errorf("%s %s: %w: %s", c.name, ask, err, first)
		}
		if c.name == etcd || c.name == kwok {
			continue
		}
		match := versionOf.FindSubmatch(output)
		if match == nil {
			return fmt.Errorf("%s --version prints no version such as v1.36.3", c.name)
		}
		switch version := string(match[1]); {
		case wanted != "" && version != wanted:
			return fmt.Errorf("%s is of Kubernetes %s, want %s", c.name, version, wanted)
		case of != "" && version != of:
			return fmt.Errorf("%s is of Kubernetes %s, %s of %s", c.name, version, apiserver, of)
		default:
			of = version
		}
	}
	return nil
}
