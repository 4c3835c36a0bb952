// Image builds the controller's container image for amd64 and arm64 without a container engine. The image contains
// only the program and the certificates of public authorities.
//
//	go build (per processor) ─┐
//	                          ├─> layers ─> images ─> index ─> an OCI layout, a registry
//	x509roots (a Go module) ──┘                └─> one archive per processor, for `docker load` and `kind load`
//	debug/buildinfo ──> SPDX: what is in the program; refers to its image
//
// The same commit gives the same bytes: the compiler trims paths, all times are that of the commit
// (SOURCE_DATE_EPOCH), files are in a fixed order, and only Go modules are read from the network.
//
// The image has user 65532 and the entry point /karpenter with the argument controller. It has no shell, no libc and
// no writable folder.
//
// It must not depend on what the program does.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// options configures the build.
type options struct {
	source     string // the repository
	out        string // folder for the results
	reference  string // name:tag under which the image is loaded
	release    string // version that the program reports
	processors []string
	epoch      time.Time
	push       bool
}

func main() {
	o := options{}
	processors := ""
	flag.StringVar(&o.source, "source", ".", "the repository")
	flag.StringVar(&o.out, "out", "bin/image", "folder for the OCI layout, the archives and the lists of contents")
	flag.StringVar(&o.reference, "reference", "karpenter-go/karpenter:dev", "name and tag of the image")
	flag.StringVar(&o.release, "release", "dev", "version that the program says of itself")
	flag.StringVar(&processors, "processors", "amd64,arm64", "processors to build for, separated by commas")
	flag.BoolVar(&o.push, "push", false, "send the image to the registry that the reference names, with the credentials of ~/.docker/config.json")
	flag.Parse()
	o.processors = strings.Split(processors, ",")
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintf(os.Stderr, "image: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	var err error
	if o.epoch, err = commitTime(ctx, o.source); err != nil {
		return err
	}
	if err := os.RemoveAll(o.out); err != nil {
		return fmt.Errorf("clearing %s: %w", o.out, err)
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return fmt.Errorf("making %s: %w", o.out, err)
	}
	var built []member
	for _, processor := range o.processors {
		binary := filepath.Join(o.out, "karpenter-linux-"+processor)
		if err := compile(ctx, o, processor, binary); err != nil {
			return err
		}
		m, err := assemble(binary, processor, o)
		if err != nil {
			return err
		}
		built = append(built, m)
	}
	return errors.Join(write(o, built), push(ctx, o, built))
}

// commitTime returns the time of everything in the image: SOURCE_DATE_EPOCH, else the time of the last commit.
func commitTime(ctx context.Context, source string) (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		command := exec.CommandContext(ctx, "git", "-C", source, "log", "-1", "--format=%ct")
		output, err := command.Output()
		if err != nil {
			return time.Time{}, fmt.Errorf("asking git for the time of the commit (or set SOURCE_DATE_EPOCH): %w", err)
		}
		text = strings.TrimSpace(string(output))
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH is %q, want seconds since 1970", text)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// compile builds the static program for Linux on a processor.
func compile(ctx context.Context, o options, processor, path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	// grpcnotrace: the Makefile says why.
	command := exec.CommandContext(ctx, "go", "build", "-tags", "grpcnotrace", "-trimpath", "-ldflags", "-s -w -X main.release="+o.release,
		"-o", path, "./cmd/karpenter")
	command.Dir = o.source
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+processor)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("building for %s: %w\n%s", processor, err, output)
	}
	return nil
}

// write writes the OCI layout, one archive per processor and the SBOMs to the folder.
func write(o options, built []member) error {
	index, err := indexOf(built)
	if err != nil {
		return err
	}
	if _, err := layout.Write(filepath.Join(o.out, "oci"), index); err != nil {
		return fmt.Errorf("writing the OCI layout: %w", err)
	}
	tag, err := name.NewTag(o.reference)
	if err != nil {
		return fmt.Errorf("-reference: %w", err)
	}
	for _, m := range built {
		stem := filepath.Join(o.out, "karpenter-linux-"+m.processor)
		if err := tarball.WriteToFile(stem+".tar", tag, m.image); err != nil {
			return fmt.Errorf("writing the archive for %s: %w", m.processor, err)
		}
		if err := os.WriteFile(stem+".spdx.json", m.contents, 0o644); err != nil {
			return fmt.Errorf("writing the list of contents for %s: %w", m.processor, err)
		}
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	fmt.Printf("%s %s\n", o.reference, digest)
	return nil
}

// push sends the index, its images and the SBOMs to the registry, if one is configured.
func push(ctx context.Context, o options, built []member) error {
	if !o.push {
		return nil
	}
	tag, err := name.NewTag(o.reference)
	if err != nil {
		return fmt.Errorf("-reference: %w", err)
	}
	index, err := indexOf(built)
	if err != nil {
		return err
	}
	credentials := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	if err := remote.WriteIndex(tag, index, credentials...); err != nil {
		return fmt.Errorf("sending %s: %w", tag, err)
	}
	for _, m := range built {
		digest, err := m.list.Digest()
		if err != nil {
			return err
		}
		if err := remote.Write(tag.Context().Digest(digest.String()), m.list, credentials...); err != nil {
			return fmt.Errorf("sending the list of contents for %s: %w", m.processor, err)
		}
	}
	return nil
}

// member is the image for one processor.
type member struct {
	processor string
	image     v1.Image
	contents  []byte   // SPDX
	list      v1.Image // contents as an artifact that refers to the image
}
