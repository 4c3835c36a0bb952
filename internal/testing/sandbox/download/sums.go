package download

import (
	_ "embed"
	"errors"
	"fmt"
	"path"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// The locations of the releases, and what follows them: /VERSION/ARCHIVE.
// Sources: https://kubernetes.io/releases/download, https://github.com/etcd-io/etcd/releases.
const (
	kubernetesLocation = "https://dl.k8s.io"
	etcdLocation       = "https://github.com/etcd-io/etcd/releases/download"
)

//go:embed sums.txt
var sums string

// Platform is that of this program, such as linux-amd64.
const Platform = runtime.GOOS + "-" + runtime.GOARCH

// Archive is an archive of a release.
type Archive struct {
	// Name is for messages, such as "Kubernetes v1.36.0".
	Name string
	// Path is that under the location of the releases, such as v1.36.0/kubernetes-server-linux-amd64.tar.gz.
	Path string
	// Sum is the checksum in hexadecimal digits: 128 of SHA-512 or 64 of SHA-256.
	Sum string
	// Members are the names of executables by their paths in the archive.
	Members map[string]string
	// location is that of the releases.
	location string
}

// line is a line of sums.txt.
type line struct {
	sum, path                  string
	version, product, platform string
	numbers                    [3]int // of the version
}

var (
	form = regexp.MustCompile(`^([0-9a-f]{64}|[0-9a-f]{128})  ` +
		`(v(\d+)\.(\d+)\.(\d+)/(kubernetes-server|etcd-v[\d.]+)-([a-z]+-[a-z0-9]+)\.tar\.gz)$`)
	// errForm reports a line that is not of the format.
	errForm = errors.New("want a checksum, two spaces and v1.2.3/kubernetes-server-OS-ARCH.tar.gz or v1.2.3/etcd-v1.2.3-OS-ARCH.tar.gz")
)

func parse(text string) ([]line, error) {
	var lines []line
	for row := range strings.Lines(text) {
		match := form.FindStringSubmatch(strings.TrimSuffix(row, "\n"))
		if match == nil {
			return nil, fmt.Errorf("checksum %q: %w", strings.TrimSpace(row), errForm)
		}
		l := line{sum: match[1], path: match[2], version: path.Dir(match[2]), product: match[6], platform: match[7]}
		for i := range l.numbers {
			l.numbers[i], _ = strconv.Atoi(match[3+i]) // digits
		}
		if l.product != "kubernetes-server" {
			if l.product != "etcd-"+l.version {
				return nil, fmt.Errorf("checksum of %s: the versions differ", l.path)
			}
			l.product = "etcd"
		}
		lines = append(lines, l)
	}
	return lines, nil
}

// NoSumError reports that the checksums of a release are not known.
type NoSumError struct{ Version, Platform string }

func (e *NoSumError) Error() string {
	if !strings.HasPrefix(e.Platform, "linux-") {
		return fmt.Sprintf("Kubernetes %s has no executables of the control plane for %s", e.Version, e.Platform)
	}
	return fmt.Sprintf("the checksums of Kubernetes %s for %s are not in the source tree", e.Version, e.Platform)
}

// Find returns the archives for a version of Kubernetes such as v1.36.3 and one of etcd, on a platform such as linux-amd64.
// Of Kubernetes it is the newest release of that minor version whose checksum is known; of etcd the version itself, or no
// archive. The error is a *NoSumError where there is none of Kubernetes.
func Find(kubernetes, etcd, platform string) ([]Archive, error) {
	return find(sums, kubernetes, etcd, platform)
}

func find(text, kubernetes, etcd, platform string) ([]Archive, error) {
	lines, err := parse(text)
	if err != nil {
		return nil, err
	}
	lines = slices.DeleteFunc(lines, func(l line) bool { return l.platform != platform })
	// The newest is last.
	slices.SortFunc(lines, func(a, b line) int { return slices.Compare(a.numbers[:], b.numbers[:]) })
	minor := kubernetes[:strings.LastIndexByte(kubernetes, '.')+1]
	var server, store *Archive
	for _, l := range lines {
		switch {
		case l.product == "kubernetes-server" && strings.HasPrefix(l.version, minor):
			server = &Archive{Name: "Kubernetes " + l.version, Path: l.path, Sum: l.sum, location: kubernetesLocation, Members: map[string]string{}}
			for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"} {
				server.Members["kubernetes/server/bin/"+name] = name
			}
		case l.product == "etcd" && l.version == etcd:
			inside := strings.TrimSuffix(path.Base(l.path), ".tar.gz")
			store = &Archive{Name: "etcd " + l.version, Path: l.path, Sum: l.sum, location: etcdLocation,
				Members: map[string]string{inside + "/etcd": "etcd"}}
		}
	}
	if server == nil {
		return nil, &NoSumError{kubernetes, platform}
	}
	if store == nil {
		return []Archive{*server}, nil
	}
	return []Archive{*server, *store}, nil
}
