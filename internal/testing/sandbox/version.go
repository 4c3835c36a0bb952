package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// source identifies the sources of one version of the control plane: the folder of the module
// sandbox/kubernetes, and the file with that version's requirements. The folder holds one such file per minor version
// (1.33.mod, with 1.33.sum beside it), which `go build -modfile` uses in place of go.mod.
type source struct {
	module  string // absolute path of the folder
	modfile string // absolute path; go.mod of the module for the default version
}

func (s source) isDefault() bool { return s.modfile == filepath.Join(s.module, "go.mod") }

// sumfile returns the file with the checksums that belong to the modfile.
func (s source) sumfile() string { return strings.TrimSuffix(s.modfile, ".mod") + ".sum" }

// minor returns the minor version of Kubernetes that the modfile requires, such as 1.36.
func (s source) minor() (string, error) {
	content, err := os.ReadFile(s.modfile)
	if err != nil {
		return "", err
	}
	parts := strings.SplitN(strings.TrimPrefix(requirement(string(content), "k8s.io/kubernetes"), "v"), ".", 3)
	if len(parts) != 3 {
		return "", fmt.Errorf("%s requires no k8s.io/kubernetes", s.modfile)
	}
	return parts[0] + "." + parts[1], nil
}

// versionSources returns the source of each minor version that the module supports, by minor version.
func versionSources(module string) (map[string]source, error) {
	files, err := filepath.Glob(filepath.Join(module, "*.mod"))
	if err != nil {
		return nil, err
	}
	sources := map[string]source{}
	for _, file := range files {
		s := source{module, file}
		minor, err := s.minor()
		if err != nil {
			return nil, fmt.Errorf("reading which Kubernetes version the sandbox is built for: %w", err)
		}
		sources[minor] = s
	}
	return sources, nil
}

// sourceOf returns the source of a version such as 1.33 or v1.33, or of the default version if version is empty.
func sourceOf(module, version string) (source, error) {
	if version == "" {
		return source{module, filepath.Join(module, "go.mod")}, nil
	}
	known, err := versionSources(module)
	if err != nil {
		return source{}, err
	}
	if s, found := known[strings.TrimPrefix(version, "v")]; found {
		return s, nil
	}
	var names []string
	for minor, s := range known {
		if s.isDefault() {
			minor += " (default)"
		}
		names = append(names, minor)
	}
	slices.Sort(names)
	return source{}, &VersionError{Version: version, Known: names}
}

// VersionError reports that the sandbox cannot be built for a Kubernetes version.
type VersionError struct {
	Version string
	Known   []string // minor versions, ascending
}

// ExitCode is the exit code of a program that ends with the error: the version is input.
func (e *VersionError) ExitCode() int { return 2 }

func (e *VersionError) Error() string {
	return fmt.Sprintf("Kubernetes version %q: the sandbox is built for one of %s", e.Version, strings.Join(e.Known, ", "))
}
