package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const (
	// user is the user and group of the process. The ids have no name on usual systems.
	user = "65532:65532"
	// certificates is where Go searches for certificates on Linux.
	certificates = "etc/ssl/certs/ca-certificates.crt"
	// spdx is the media type of an SBOM in SPDX format.
	spdx = "application/spdx+json"
)

// file is a file or, with a trailing slash in its name, a folder of a layer.
type file struct {
	name    string
	mode    int64
	content []byte
}

// assemble builds the image around a binary.
func assemble(binary, processor string, o options) (member, error) {
	program, err := os.ReadFile(binary)
	if err != nil {
		return member{}, err
	}
	roots, err := layerOf(o.epoch,
		file{"etc/", 0o755, nil}, file{"etc/ssl/", 0o755, nil}, file{"etc/ssl/certs/", 0o755, nil}, file{certificates, 0o644, authorities()})
	if err != nil {
		return member{}, err
	}
	body, err := layerOf(o.epoch, file{"karpenter", 0o755, program})
	if err != nil {
		return member{}, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if image, err = mutate.AppendLayers(image, roots, body); err != nil {
		return member{}, fmt.Errorf("adding layers: %w", err)
	}
	if image, err = configured(image, processor, o); err != nil {
		return member{}, err
	}
	contents, err := listContents(binary, program, o)
	if err != nil {
		return member{}, err
	}
	list, err := listImage(image, contents)
	return member{processor, image, contents, list}, err
}

// configured returns the image with its configuration: entry point, user and description.
func configured(image v1.Image, processor string, o options) (v1.Image, error) {
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", processor, v1.Time{Time: o.epoch}
	config.Config = v1.Config{
		User: user, Entrypoint: []string{"/karpenter"}, Cmd: []string{"controller"}, WorkingDir: "/",
		Labels: map[string]string{
			"org.opencontainers.image.title":    "karpenter",
			"org.opencontainers.image.version":  o.release,
			"org.opencontainers.image.source":   "https://github.com/karpenter-go/karpenter",
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	for i := range config.History {
		config.History[i] = v1.History{Created: v1.Time{Time: o.epoch}, CreatedBy: "tools/image"}
	}
	image, err = mutate.ConfigFile(image, config)
	if err != nil {
		return nil, fmt.Errorf("writing the configuration: %w", err)
	}
	return image, nil
}

// layerOf returns a layer with these files, in this order.
func layerOf(at time.Time, files ...file) (v1.Layer, error) {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, f := range files {
		header := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.content)), ModTime: at, Format: tar.FormatPAX, Typeflag: tar.TypeReg}
		if f.content == nil {
			header.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("writing %s into a layer: %w", f.name, err)
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, fmt.Errorf("writing %s into a layer: %w", f.name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil }, tarball.WithMediaType(types.OCILayer))
}

// authorities returns the certificates of Mozilla's list, as PEM. It omits those that are trusted with restrictions,
// which a file cannot express.
func authorities() []byte {
	var text bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // writing to a buffer does not fail
		}
	}
	return text.Bytes()
}

// listImage returns an SBOM as an artifact that refers to its image (OCI image specification 1.1, "subject",
// https://github.com/opencontainers/image-spec/blob/main/manifest.md).
func listImage(image v1.Image, contents []byte) (v1.Image, error) {
	subject, err := descriptorOf(image)
	if err != nil {
		return nil, err
	}
	list := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), spdx)
	if list, err = mutate.Append(list, mutate.Addendum{Layer: static.NewLayer(contents, spdx)}); err != nil {
		return nil, fmt.Errorf("wrapping the list of contents: %w", err)
	}
	return mutate.Subject(list, subject).(v1.Image), nil
}

// indexOf returns the index of the images and their SBOMs.
func indexOf(built []member) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, m := range built {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: m.image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: m.processor}},
		})
	}
	return index, nil
}

func descriptorOf(image v1.Image) (v1.Descriptor, error) {
	digest, err := image.Digest()
	if err != nil {
		return v1.Descriptor{}, fmt.Errorf("hashing the image: %w", err)
	}
	size, err := image.Size()
	return v1.Descriptor{MediaType: types.OCIManifestSchema1, Digest: digest, Size: size}, err
}
